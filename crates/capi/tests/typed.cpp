/* The C++ interface: lambdas, typed accesses, errors as exceptions, exceptions as messages. */
#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "alongside.hpp"
#include "check.h"

namespace {

struct counted {
    static inline std::atomic<int> alive{0};
    counted() { alive++; }
    counted(const counted &) { alive++; }
    counted(counted &&) noexcept { alive++; }
    ~counted() { alive--; }
};

void dependences()
{
    std::vector<double> values(1000, 1.0);
    double sum = 0, product = 0;
    for (int round = 0; round < 50; round++) {
        al::spawn([&] { for (double &value : values) value += 1; },
                  al::inout(values.data(), values.size()));
        al::spawn(al::named("sum", 1), [&] {
            sum = 0;
            for (double value : values) sum += value;
        }, al::in(values.data(), values.size()), al::out(sum));
        al::spawn([&product, &sum, round] { product = sum * round; }, al::in(sum), al::out(product));
    }
    al::wait_on(sum);
    SAME(sum, 51000);
    al::taskwait();
    SAME(product, 51000 * 49);
}

void boxes()
{
    constexpr std::size_t side = 16, block = 4;
    static int grid[side][side];
    for (int round = 1; round <= 10; round++) {
        for (std::size_t row = 0; row < side; row += block) {
            for (std::size_t column = 0; column < side; column += block) {
                al::spawn([=] {
                    for (std::size_t i = row; i < row + block; i++)
                        for (std::size_t j = column; j < column + block; j++) grid[i][j]++;
                }, al::box(AL_INOUT, &grid[0][0], {{row, row + block}, {column, column + block}}));
            }
        }
        al::spawn([=] {
            for (auto &row : grid)
                for (int cell : row) SAME(cell, round);
        }, al::box(AL_IN, &grid[0][0], {{0, side}, {0, side}}));
    }
    al::taskwait();
    static int line[64];
    for (std::size_t at = 0; at < 64; at += 8) {
        al::spawn([=] { line[at] = 1; }, al::part(AL_OUT, line, at, 8));
    }
    int total = 0;
    al::spawn([&] { for (int value : line) total += value; }, al::part(AL_IN, line, 0, 64));
    al::taskwait();
    SAME(total, 8);
}

void what_is_moved()
{
    auto owned = std::make_unique<int>(5);
    int seen = 0;
    al::spawn([owned = std::move(owned), &seen] { seen = *owned; });
    al::taskwait();
    SAME(seen, 5);
    counted one;
    std::vector<int> large(10000, 3);
    std::atomic<long> sum{0};
    for (int i = 0; i < 100; i++) {
        al::spawn([one, large, &sum] {
            for (int value : large) sum += value;
            al::spawn([one, &sum] { sum++; });
        });
    }
    al::taskwait();
    SAME(sum, 100 * 30000 + 100);
    SAME(counted::alive, 1);
}

void errors()
{
    counted one;
    int value = 0;
    const int *nowhere = nullptr;
    bool thrown = false;
    al_set_message_hook(keep_message, nullptr);
    try {
        al::spawn([one, &value] { value = 1; }, al::in(nowhere, 4));
    } catch (const std::system_error &error) {
        thrown = error.code().value() == EINVAL;
    }
    CHECK(thrown);
    SAME(counted::alive, 1);
    thrown = false;
    try {
        al::runtime second;
    } catch (const std::system_error &error) {
        thrown = error.code().value() == EALREADY;
    }
    CHECK(thrown);
    al::taskwait();
    SAME(value, 0);
    al::spawn([] { char byte; SAME(al_pread_async(-1, &byte, 1, 0, nullptr), 0); });
    thrown = false;
    try {
        al::taskwait();
    } catch (const std::system_error &error) {
        thrown = error.code().value() == EBADF;
    }
    CHECK(thrown);
    al_set_message_hook(nullptr, nullptr);
}

/* I/O tasks ask for what the builder says; what makes no sense throws, and nothing runs. */
void io_tasks()
{
    bool is_granted = false, thrown = false;
    al::spawn(al::io("save").bandwidth("20MB/s").size(1000).layer("default"), [&] {
        is_granted = al_layer() != nullptr && std::string(al_layer()) == "default";
    }, al::out(is_granted));
    al::spawn([&] { CHECK(is_granted && al_layer() == nullptr); }, al::in(is_granted));
    al::spawn(al::io().size(1), [] { CHECK(al_layer() != nullptr); });
    al::taskwait();
    CHECK(is_granted);
    al_set_message_hook(keep_message, nullptr);
    try {
        al::spawn(al::io("save").bandwidth("fast"), [] { CHECK(false); });
    } catch (const std::system_error &error) {
        thrown = error.code().value() == EINVAL;
    }
    CHECK(thrown && strstr(message_last, "\"save\"") != nullptr);
    al_set_message_hook(nullptr, nullptr);
    al::taskwait();
}

std::string text_of(int file)
{
    char bytes[64];
    CHECK(file >= 0);
    ssize_t length = al_pread(file, bytes, sizeof bytes, 0);
    CHECK(length >= 0);
    close(file);
    return std::string(bytes, static_cast<std::size_t>(length));
}

std::string contents(const char *path)
{
    return text_of(al_open(path));
}

std::string text(const std::string &place)
{
    return text_of(open(place.c_str(), O_RDONLY | O_CLOEXEC));
}

void put(const char *path, int flags, const std::string &text)
{
    int file = open(path, flags | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    SAME(al_pwrite(file, text.data(), text.size(), 0), text.size());
    close(file);
}

/* Directories, and what is gone with its scope. */
std::string folders(const std::string &beside)
{
    const std::string own = beside + "-folder";
    std::string place;
    {
        al::scratch words("words.txt");
        place = words.path();
        al::spawn(al::io("write").writes(words.path()), [] {
            put(al::path(0), O_WRONLY | O_CREAT | O_TRUNC, "for now");
        });
        al::scratch moved(std::move(words));
        al::spawn(al::io("fill").reads(moved.path()).fills_dir(own.c_str()), [] {
            put((std::string(al::path(1)) + "/a").c_str(), O_WRONLY | O_CREAT, text(al::path(0)));
        });
        al::spawn(al::io("change").changes_dir(own.c_str()), [] {
            put((std::string(al::path(0)) + "/a").c_str(), O_WRONLY, "not");
        });
    }
    al::spawn(al::io("look").reads_dir(own.c_str()), [] {
        CHECK(text(std::string(al::path(0)) + "/a") == "not now");
    });
    al::taskwait();
    unlink((own + "/a").c_str());
    rmdir(own.c_str());
    return place;
}

std::string files()
{
    const std::string path = "typed-" + std::to_string(getpid()), copy = path + "-copy";
    al::spawn(al::io("write").writes(path.c_str()), [] {
        put(al::path(0), O_WRONLY | O_CREAT | O_TRUNC, "first words");
    });
    al::spawn(al::io("change").changes(path.c_str()).size(1000), [] {
        put(al::path(0), O_WRONLY, "other");
    });
    al::spawn(al::io("copy").reads(path.c_str()).writes(copy.c_str()), [&] {
        put(al::path(1), O_WRONLY | O_CREAT | O_TRUNC, contents(path.c_str()));
        CHECK(al::path(2) == nullptr);
    });
    CHECK(contents(copy.c_str()) == "other words");
    al::persist(copy.c_str());
    al::taskwait();
    unlink(path.c_str());
    unlink(copy.c_str());
    return folders(copy);
}

/* In a process of its own: the exception ends it, and its message names the task. */
void an_exception_escapes()
{
    int ends[2], status;
    char said[1000] = "";
    SAME(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        limit_time();
        al::runtime runtime;
        al::spawn(al::named("thrower"), [] { throw std::runtime_error("out of cheese"); });
        al::taskwait();
        _exit(0);
    }
    close(ends[1]);
    SAME(waitpid(child, &status, 0), child);
    CHECK(read(ends[0], said, sizeof said - 1) > 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(said, "\"thrower\": out of cheese") != nullptr);
}

} // namespace

int main()
{
    limit_time();
    an_exception_escapes();
    {
        al::runtime runtime;
        dependences();
        boxes();
        what_is_moved();
        errors();
        io_tasks();
        const std::string scratch = files();
        runtime.stop();
        CHECK(access(scratch.c_str(), F_OK) != 0);
    }
    SAME(al_workers(), 0);
    {
        auto options = al::runtime::defaults();
        options.workers = 3;
        al::runtime runtime(options);
        SAME(al_workers(), 3);
    }
    SAME(al_workers(), 0);
    return 0;
}
