/* Alongside from C++17: lambdas as tasks, typed accesses, a runtime that ends with its scope.
 *
 *     al::runtime runtime;
 *     al::spawn([&] { total = sum(values); }, al::in(values, 100), al::out(total));
 *     al::taskwait();
 *
 * The lambda is moved into the task. What it captures by reference has to live until the task is
 * over. Everything that fails throws std::system_error, whose code is the errno; what the message
 * hook gets says more. An exception that leaves a task's body ends the program with a message that
 * names the task, as nobody could catch it.
 *
 * Inside a task the functions of alongside.h are used as they are (al_pread, al_pwrite_async ...).
 */
#ifndef ALONGSIDE_HPP
#define ALONGSIDE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "alongside.h"

namespace al {

namespace detail {

/* Bytes of a lambda that the task holds itself; larger ones get memory of their own. */
constexpr std::size_t inline_bytes = 32;

inline void check(int status, const char *what)
{
    if (status < 0) {
        throw std::system_error(-status, std::generic_category(), what);
    }
}

/* How a task is told apart in messages, where it runs first, and what it asks of storage. */
struct settings {
    const char *name = nullptr;
    int priority = 0;
    bool is_io = false;
    al_io asked{};
    std::vector<al_file> files{};
};

/* An exception left a body: says which, and ends the program. */
[[noreturn]] inline void escaped(const char *name) noexcept
{
    const char *task = name != nullptr ? name : "(no name)";
    try {
        throw;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "alongside: an exception left the task \"%s\": %s\n", task,
                     error.what());
    } catch (...) {
        std::fprintf(stderr, "alongside: an exception left the task \"%s\"\n", task);
    }
    std::terminate();
}

/* What a task keeps: the callable, and the name for `escaped`. */
template <typename Callable> struct kept {
    Callable callable;
    const char *name;

    void run() noexcept
    {
        try {
            callable();
        } catch (...) {
            escaped(name);
        }
    }
};

/* Whether the bytes of a value may be copied to another place by the library. */
template <typename Kept>
constexpr bool is_copied = std::is_trivially_copyable_v<Kept> && sizeof(Kept) <= inline_bytes &&
                           alignof(Kept) <= alignof(std::uint64_t);

/* An access and the spans that it points to: accesses are passed on by value. */
struct use {
    al_access access{};
    std::array<al_span, AL_DIMENSIONS_MAX> spans{};
};

inline use whole(al_direction direction, const void *base)
{
    use made;
    made.access = al_whole(direction, base);
    return made;
}

inline use range(al_direction direction, const void *base, std::size_t bytes)
{
    use made;
    made.access = al_range(direction, base, 0, bytes);
    return made;
}

} // namespace detail

/* Name and priority of a task: spawn(al::named("halo"), lambda, ...). The name has to stay until
 * the task is over. */
using settings = detail::settings;

inline settings named(const char *name, int priority = 0)
{
    return settings{name, priority};
}

/* As `named`, for an I/O task, with what it asks for (see al_io):
 * spawn(al::io("save").bandwidth("20MB/s").size(bytes), lambda, ...). */
struct io : settings {
    explicit io(const char *name = nullptr, int priority = 0)
    {
        this->name = name;
        this->priority = priority;
        is_io = true;
    }

    io &bandwidth(const char *words)
    {
        asked.bandwidth = words;
        return *this;
    }

    io &size(std::uint64_t bytes)
    {
        asked.size = bytes;
        return *this;
    }

    io &layer(const char *layer_name)
    {
        asked.layer = layer_name;
        return *this;
    }

    /* Files, numbered in the order in which they are named (see al_path). The texts have to stay
     * until the task is spawned. */
    io &reads(const char *path)
    {
        return file(path, AL_IN);
    }

    io &writes(const char *path)
    {
        return file(path, AL_OUT);
    }

    io &changes(const char *path)
    {
        return file(path, AL_INOUT);
    }

    /* Directories with all that is in them; see AL_DIR_OUT. */
    io &reads_dir(const char *path)
    {
        return file(path, AL_DIR_IN);
    }

    io &fills_dir(const char *path)
    {
        return file(path, AL_DIR_OUT);
    }

    io &changes_dir(const char *path)
    {
        return file(path, AL_DIR_INOUT);
    }

private:
    io &file(const char *path, al_direction direction)
    {
        files.push_back(al_file{path, direction});
        return *this;
    }
};

/* The runtime, from here to the end of the scope. */
class runtime {
public:
    runtime() : runtime(defaults())
    {
    }

    explicit runtime(const al_options &options)
    {
        detail::check(al_start(&options), "al_start");
    }

    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;

    /* Waits for all tasks. An error of a non-blocking operation that nobody asked about was told
     * by the message hook; call stop to get it. */
    ~runtime()
    {
        if (runs) {
            al_stop();
        }
    }

    void stop()
    {
        runs = false;
        detail::check(al_stop(), "al_stop");
    }

    static al_options defaults()
    {
        al_options options;
        al_options_init(&options);
        return options;
    }

private:
    bool runs = true;
};

/* Accesses to an object, whole. */
template <typename T> detail::use in(const T &object)
{
    return detail::whole(AL_IN, std::addressof(object));
}

template <typename T> detail::use out(T &object)
{
    return detail::whole(AL_OUT, std::addressof(object));
}

template <typename T> detail::use inout(T &object)
{
    return detail::whole(AL_INOUT, std::addressof(object));
}

template <typename T> detail::use concurrent(T &object)
{
    return detail::whole(AL_CONCURRENT, std::addressof(object));
}

template <typename T> detail::use commutative(T &object)
{
    return detail::whole(AL_COMMUTATIVE, std::addressof(object));
}

/* Accesses to `count` objects from `first` on. The datum is `first`; for parts of one array that
 * may overlap, see `part`. */
template <typename T> detail::use in(const T *first, std::size_t count)
{
    return detail::range(AL_IN, first, count * sizeof(T));
}

template <typename T> detail::use out(T *first, std::size_t count)
{
    return detail::range(AL_OUT, first, count * sizeof(T));
}

template <typename T> detail::use inout(T *first, std::size_t count)
{
    return detail::range(AL_INOUT, first, count * sizeof(T));
}

/* Access to `count` objects of an array, from `offset` on. */
template <typename T>
detail::use part(al_direction direction, const T *array, std::size_t offset, std::size_t count)
{
    detail::use made;
    made.access = al_range(direction, array, offset * sizeof(T), count * sizeof(T));
    return made;
}

/* Access to a box of an array: one span for each dimension, slowest first, in elements. */
template <typename T>
detail::use box(al_direction direction, const T *array, std::initializer_list<al_span> spans)
{
    detail::use made;
    made.access = al_box(direction, array, static_cast<unsigned>(spans.size()), nullptr);
    std::size_t dimension = 0;
    for (const al_span &span : spans) {
        if (dimension < made.spans.size()) {
            made.spans[dimension++] = span;
        }
    }
    made.access.span = made.spans[0];
    return made;
}

/* Spawns a task that calls `callable` when its accesses allow it. */
template <typename Callable, typename... Uses>
std::enable_if_t<std::is_invocable_v<std::decay_t<Callable> &>> spawn(const settings &how,
                                                                     Callable &&callable,
                                                                     const Uses &...uses)
{
    static_assert((std::is_same_v<Uses, detail::use> && ...), "accesses: al::in(x), al::out(x) ...");
    using Kept = detail::kept<std::decay_t<Callable>>;
    std::array<al_access, sizeof...(Uses) + 1> accesses{uses.access..., al_access{}};
    std::array<const detail::use *, sizeof...(Uses) + 1> sources{&uses..., nullptr};
    for (std::size_t number = 0; number < sizeof...(Uses); number++) {
        accesses[number].spans = sources[number]->spans.data();
    }
    al_task task{};
    task.accesses = accesses.data();
    task.accesses_count = sizeof...(Uses);
    task.name = how.name;
    task.priority = how.priority;
    al_io asked = how.asked;
    asked.files = how.files.data();
    asked.files_count = how.files.size();
    task.io = how.is_io ? &asked : nullptr;
    task.body = [](void *kept) { static_cast<Kept *>(kept)->run(); };
    if constexpr (detail::is_copied<Kept>) {
        Kept kept{std::forward<Callable>(callable), how.name};
        task.argument = &kept;
        task.argument_bytes = sizeof kept;
        detail::check(al_spawn(&task), "al_spawn");
    } else {
        std::unique_ptr<Kept> kept(new Kept{std::forward<Callable>(callable), how.name});
        task.argument = kept.get();
        task.drop = [](void *dropped) { delete static_cast<Kept *>(dropped); };
        detail::check(al_spawn(&task), "al_spawn");
        kept.release();
    }
}

template <typename Callable, typename... Uses>
std::enable_if_t<std::is_invocable_v<std::decay_t<Callable> &>> spawn(Callable &&callable,
                                                                     const Uses &...uses)
{
    spawn(settings{}, std::forward<Callable>(callable), uses...);
}

/* Where the calling task has its file of this number. */
inline const char *path(std::size_t file)
{
    return al_path(file);
}

/* The path of a file or directory that only tasks need, from here to the end of the scope: then it
 * is deleted, after the tasks that were spawned with it. */
class scratch {
public:
    explicit scratch(const char *name = nullptr)
    {
        std::array<char, 4096> text{};
        detail::check(al_scratch(name, text.data(), text.size()), "al_scratch");
        place = text.data();
    }

    scratch(scratch &&other) noexcept : place(std::move(other.place))
    {
        other.place.clear();
    }

    scratch &operator=(scratch &&other) noexcept
    {
        std::swap(place, other.place);
        return *this;
    }

    /* After the end of the runtime it is gone, and there is nothing to be told. */
    ~scratch()
    {
        if (!place.empty()) {
            al_forget(place.c_str());
        }
    }

    const char *path() const
    {
        return place.c_str();
    }

private:
    std::string place;
};

/* Waits until a file is at its own path. */
inline void persist(const char *path)
{
    detail::check(al_persist(path), "al_persist");
}

/* Waits for what the caller spawned: in a task its children, else all tasks. */
inline void taskwait()
{
    detail::check(al_taskwait(), "al_taskwait");
}

/* Waits until nobody spawned before uses this object any more. */
template <typename T> void wait_on(const T &object)
{
    detail::check(al_wait_on(std::addressof(object)), "al_wait_on");
}

} // namespace al

#endif
