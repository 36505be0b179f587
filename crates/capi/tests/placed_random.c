/* Random tasks write, change, copy and read files on two layers, fail, and find theirs full, while
 * files are moved and copied beside them: every byte that is read, and in the end every byte at the
 * files' own paths, is that of the sequential program. */
#include "places.h"

enum { FILES = 7, STEPS = 150, BYTES_MAX = 20000, ROUNDS = 4 };

/* What a file would be in the sequential program; no bytes: it is not there. */
struct content {
    size_t count;
    unsigned char bytes[BYTES_MAX];
};

static struct content model[FILES];
static ATOMIC_INT read_count, moved_on;
static uint64_t state;

static uint64_t below(uint64_t limit)
{
    return next_random(&state) % limit;
}

/* What a task is to find, make, and pretend. */
struct job {
    struct content expected, made;
    /* the part that a change writes */
    size_t from, to;
    /* what it fails of, on the fast layer only or anywhere; 0: nothing */
    int error, only_fast;
};

static struct job *new_job(void)
{
    struct job *job = calloc(1, sizeof *job);
    CHECK(job != NULL);
    return job;
}

static void drops(void *argument)
{
    free(argument);
}

/* Whether the task pretends to fail now. */
static int fails(const struct job *job)
{
    if (job->error == 0 || (job->only_fast && strcmp(al_layer(), "fast") != 0)) {
        return 0;
    }
    moved_on += job->only_fast;
    SAME(al_fail(job->error), 0);
    return 1;
}

static void check_expected(size_t file, const struct job *job)
{
    CHECK(path_has_bytes(al_path(file), job->expected.bytes, job->expected.count));
    read_count++;
}

static void writes(void *argument)
{
    const struct job *job = argument;
    int fail = fails(job);
    write_place(0, job->made.bytes, fail ? job->made.count / 2 : job->made.count);
}

static void changes(void *argument)
{
    const struct job *job = argument;
    check_expected(0, job);
    int file = open(al_path(0), O_WRONLY | O_CLOEXEC);
    CHECK(file >= 0);
    SAME(al_pwrite(file, job->made.bytes + job->from, job->to - job->from, (off_t)job->from),
         job->to - job->from);
    SAME(close(file), 0);
}

static void copies(void *argument)
{
    const struct job *job = argument;
    check_expected(0, job);
    if (!fails(job)) {
        write_place(1, job->expected.bytes, job->expected.count);
    }
}

static void reads(void *argument)
{
    check_expected(0, argument);
}

static void spawn_job(al_body body, struct job *job, const al_file *files, size_t count,
                      uint64_t size)
{
    al_io asked = {.files = files, .files_count = count, .size = size};
    al_task task = {.body = body, .argument = job, .drop = drops, .name = "job", .io = &asked};
    SAME(al_spawn(&task), 0);
}

static void make_content(struct content *content)
{
    content->count = 1 + below(BYTES_MAX - 1);
    fill(content->bytes, content->count, 0, next_random(&state));
}

/* Some find the fast layer full, or broken. */
static void may_move_on(struct job *job)
{
    if (below(5) == 0) {
        job->error = below(2) ? ENOSPC : EDQUOT;
        job->only_fast = 1;
    }
}

static void step_write(int at)
{
    struct job *job = new_job();
    al_file file = {own_path(at), AL_OUT};
    make_content(&job->made);
    may_move_on(job);
    model[at] = job->made;
    spawn_job(writes, job, &file, 1, job->made.count);
}

static void step_change(int at)
{
    struct job *job = new_job();
    al_file file = {own_path(at), AL_INOUT};
    job->expected = job->made = model[at];
    job->from = below(model[at].count);
    job->to = job->from + 1 + below(model[at].count - job->from);
    fill(job->made.bytes + job->from, job->to - job->from, 0, next_random(&state));
    model[at] = job->made;
    spawn_job(changes, job, &file, 1, 0);
}

static void step_copy(int at, int to)
{
    struct job *job = new_job();
    al_file files[] = {{own_path(at), AL_IN}, {own_path(to), AL_OUT}};
    job->expected = model[at];
    may_move_on(job);
    model[to] = model[at];
    spawn_job(copies, job, files, 2, model[at].count);
}

static void step_read(int at)
{
    struct job *job = new_job();
    al_file file = {own_path(at), AL_IN};
    job->expected = model[at];
    spawn_job(reads, job, &file, 1, 0);
}

/* A task that fails is as if it had not been there. */
static void step_fail(int at)
{
    struct job *job = new_job();
    al_file file = {own_path(at), AL_OUT};
    SAME(al_taskwait(), 0);
    make_content(&job->made);
    job->error = EBADMSG;
    al_set_message_hook(keep_message, NULL);
    spawn_job(writes, job, &file, 1, 0);
    SAME(al_taskwait(), -EBADMSG);
    al_set_message_hook(NULL, NULL);
}

static void step(void)
{
    int at = (int)below(FILES);
    int kind = model[at].count == 0 ? 0 : (int)below(12);
    switch (kind) {
    case 0:
    case 1:
    case 2:
        return step_write(at);
    case 3:
    case 4:
        return step_change(at);
    case 5:
    case 6:
        return step_copy(at, (at + 1 + (int)below(FILES - 1)) % FILES);
    case 7:
        return step_fail(at);
    case 8:
        SAME(al_persist(own_path(at)), 0);
        CHECK(path_has_bytes(own_path(at), model[at].bytes, model[at].count));
        return;
    case 9:
        CHECK(has_bytes(al_open(own_path(at)), model[at].bytes, model[at].count));
        return;
    default:
        return step_read(at);
    }
}

int main(void)
{
    const char *seed = getenv("SEED");
    state = seed != NULL ? strtoull(seed, NULL, 10) : 20;
    /* About four files fit on the fast layer. */
    describe_places(40);
    for (int round = 0; round < ROUNDS; round++) {
        start_moving(1 + (unsigned)round % 3, 16, round & 1, round & 2);
        for (int i = 0; i < STEPS; i++) {
            step();
        }
        SAME(al_stop(), 0);
        for (int at = 0; at < FILES; at++) {
            CHECK(model[at].count == 0 ||
                  path_has_bytes(own_path(at), model[at].bytes, model[at].count));
        }
        check_nothing_is_left();
    }
    CHECK(read_count > 100 && moved_on > 0);
    return 0;
}
