/* How processes end: a stack that overflows is a segmentation fault whose message names the task;
 * exit in a task ends the program with its code; a child of a fork has no runtime. */
#include "check.h"

static int runs_on = 1;

static __attribute__((noinline)) int deeper(int depth)
{
    volatile char page[512];
    page[0] = (char)depth;
    if (runs_on) {
        return deeper(depth + 1) + page[0];
    }
    return page[0];
}

static void overflows(void *argument)
{
    (void)argument;
    deeper(0);
}

static void exits(void *argument)
{
    exit((int)(intptr_t)argument);
}

static void spawn_named(al_body body, void *argument, const char *name)
{
    al_task task = {.body = body, .argument = argument, .name = name};
    SAME(al_spawn(&task), 0);
}

/* Runs a program of its own in a child: `what` says which. Gives how it ended; what it wrote to
 * standard error is kept. */
static char said[4096];

static int run_child(void (*what)(void))
{
    int ends[2], status;
    SAME(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        limit_time();
        what();
        _exit(99);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0) {
        length += (size_t)got;
    }
    said[length] = 0;
    close(ends[0]);
    SAME(waitpid(child, &status, 0), child);
    return status;
}

static void overflow_named(void)
{
    start_workers(1);
    spawn_named(overflows, NULL, "the deep one");
    al_stop();
}

static void overflow_nameless(void)
{
    start_workers(1);
    spawn(overflows, NULL);
    al_stop();
}

/* A fault that is no overflow keeps its usual end, without our words. */
static void writes_to_nowhere(void *argument)
{
    *(volatile int *)argument = 1;
}

static void plain_fault(void)
{
    start_workers(1);
    spawn(writes_to_nowhere, (void *)64);
    al_stop();
}

static void programs_own_handler(int number)
{
    (void)number;
    static const char text[] = "the program's own handler";
    (void)!write(2, text, sizeof text - 1);
    _exit(31);
}

static void fault_with_handler(void)
{
    signal(SIGSEGV, programs_own_handler);
    start_workers(1);
    spawn(writes_to_nowhere, (void *)64);
    al_stop();
}

static void exit_in_a_task(void)
{
    start_workers(2);
    spawn(exits, (void *)42);
    al_stop();
}

/* What is called at the end is in no task: plain I/O, and nothing else runs meanwhile. */
static int file;

static void writes_at_the_end(void)
{
    char byte = 0;
    int okay = al_pwrite(file, "x", 1, 0) == 1 && al_fsync(file) == 0 &&
               pread(file, &byte, 1, 0) == 1 && byte == 'x' && al_current_task() == 0 &&
               al_stop() == -EDEADLK && al_taskwait() == -EDEADLK;
    if (!okay) {
        _exit(98);
    }
}

static void reads_and_exits(void *argument)
{
    char byte;
    (void)argument;
    SAME(al_pread(file, &byte, 1, 0), 1);
    exit(44);
}

static void exit_with_io(void)
{
    file = scratch(0);
    SAME(pwrite(file, "y", 1, 0), 1);
    atexit(writes_at_the_end);
    start_workers(1);
    spawn(reads_and_exits, NULL);
    al_stop();
}

static void says_goodbye(void)
{
    static const char text[] = "goodbye";
    (void)!write(2, text, sizeof text - 1);
}

static void waits_for_ever(void *argument)
{
    (void)argument;
    al_pause();
}

static void exit_with_tasks(void)
{
    atexit(says_goodbye);
    start_workers(2);
    spawn(waits_for_ever, NULL);
    exit(43);
}

int main(void)
{
    int status;
    limit_time();
    status = run_child(overflow_named);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(strstr(said, "stack overflow") != NULL && strstr(said, "the deep one") != NULL);
    status = run_child(overflow_nameless);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(strstr(said, "stack overflow") != NULL && strstr(said, "no name") != NULL);
    status = run_child(plain_fault);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(strstr(said, "overflow") == NULL);
    status = run_child(fault_with_handler);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 31);
    CHECK(strstr(said, "own handler") != NULL);
    status = run_child(exit_in_a_task);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    status = run_child(exit_with_io);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 44);
    status = run_child(exit_with_tasks);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 43);
    CHECK(strcmp(said, "goodbye") == 0);
    return 0;
}
