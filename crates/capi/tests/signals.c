/* Signals are for the program's own threads: handlers never run on a thread of the library. */
#include "check.h"

#include <pthread.h>
#include <sys/syscall.h>

#define SIGNALS 300

static _Atomic int handled, on_others;
static pthread_t main_thread;
static int file;

static void handler(int number)
{
    (void)number;
    if (!pthread_equal(pthread_self(), main_thread)) {
        on_others++;
    }
    handled++;
}

static void reads(void *argument)
{
    char byte;
    (void)argument;
    SAME(al_pread(file, &byte, 1, 0), 1);
}

static void reads_for_ever(void *argument)
{
    _Atomic int *stop = argument;
    while (!*stop) {
        reads(NULL);
    }
}

/* Signals go to the process, from outside: whichever thread takes them may handle them. */
static pid_t bother(void)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int i = 0; i < SIGNALS; i++) {
            kill(parent, i % 2 ? SIGINT : SIGUSR1);
            sched_yield();
        }
        _exit(0);
    }
    CHECK(child > 0);
    return child;
}

int main(void)
{
    _Atomic int stop = 0;
    int status;
    sigset_t both;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    main_thread = pthread_self();
    limit_time();
    SAME(sigaction(SIGINT, &action, NULL), 0);
    SAME(sigaction(SIGUSR1, &action, NULL), 0);
    file = scratch(0);
    SAME(pwrite(file, "x", 1, 0), 1);
    /* while the main thread takes none, nobody does: they wait for it */
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGUSR1);
    pid_t child = bother();
    for (int i = 0; i < 20; i++) {
        start_workers(2);
        spawn(reads, NULL);
        SAME(al_stop(), 0);
    }
    start_workers(2);
    spawn(reads_for_ever, &stop);
    SAME(waitpid(child, &status, 0), child);
    SAME(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);
    int before = handled;
    child = bother();
    SAME(waitpid(child, &status, 0), child);
    SAME(handled, before);
    SAME(pthread_sigmask(SIG_UNBLOCK, &both, NULL), 0);
    CHECK(handled > before);
    stop = 1;
    SAME(al_stop(), 0);
    SAME(on_others, 0);
    return 0;
}
