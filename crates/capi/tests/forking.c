/* fork while the runtime runs, from the main thread and from a task: the child has no runtime and
 * is told so, plain calls work there, and the parent does not notice. */
#include "check.h"

static int file;
static _Atomic int done;

static void nothing(void *argument)
{
    (void)argument;
}

static int told;

static void count_fulfilled(uintptr_t event)
{
    told += (int)event;
}

static void in_the_child(void)
{
    char byte = 0;
    al_task task = {.body = nothing};
    ssize_t result = 0;
    al_set_message_hook(keep_message, NULL);
    SAME(al_spawn(&task), -EINVAL);
    SAME(al_start(NULL), -EPERM);
    SAME(al_taskwait(), -EINVAL);
    SAME(al_stop(), -EINVAL);
    SAME(al_workers(), 0);
    SAME(al_worker(), -1);
    SAME(al_current_task(), 0);
    SAME(al_pause(), -EINVAL);
    SAME(al_events_add(1), -EINVAL);
    CHECK(al_engine() == NULL);
    SAME(al_pread_async(file, &byte, 1, 0, &result), -EINVAL);
    SAME(al_pread(file, &byte, 1, 0), 1);
    SAME(byte, 'x');
    byte = 0;
    SAME(pread(file, &byte, 1, 0), 1);
    SAME(byte, 'x');
    SAME(al_detach_fsync(1, count_fulfilled, file, NULL), -EPERM);
    /* What was refused is told, and then holds back no OpenMP task. */
    SAME(al_detach_done(1, count_fulfilled), 0);
    SAME(told, 1);
}

static void check_child(pid_t child, int expected)
{
    int status;
    CHECK(child > 0);
    SAME(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    SAME(WEXITSTATUS(status), expected);
}

static void forks(void *argument)
{
    char byte = 0;
    (void)argument;
    pid_t child = fork();
    if (child == 0) {
        in_the_child();
        _exit(7);
    }
    SAME(al_pread(file, &byte, 1, 0), 1);
    check_child(child, 7);
    done++;
}

static void forks_and_execs(void *argument)
{
    (void)argument;
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL);
        _exit(1);
    }
    check_child(child, 8);
    done++;
}

static void returns_in_the_child(void *argument)
{
    (void)argument;
    pid_t child = fork();
    if (child == 0) {
        al_set_message_hook(keep_message, NULL);
        return;
    }
    check_child(child, 127);
    done++;
}

static void fulfilled(uintptr_t event)
{
    *(_Atomic int *)event = 1;
}

int main(void)
{
    _Atomic int event = 0;
    file = scratch(0);
    SAME(pwrite(file, "x", 1, 0), 1);
    start_workers(2);
    SAME(al_detach_fsync((uintptr_t)&event, fulfilled, file, NULL), 0);
    SAME(al_detach_done((uintptr_t)&event, fulfilled), 0);
    for (int i = 0; i < 10; i++) {
        spawn(forks, NULL);
        spawn(forks_and_execs, NULL);
        spawn(returns_in_the_child, NULL);
        pid_t child = fork();
        if (child == 0) {
            in_the_child();
            _exit(9);
        }
        check_child(child, 9);
    }
    SAME(al_stop(), 0);
    SAME(done, 30);
    while (event == 0) {
    }
    return 0;
}
