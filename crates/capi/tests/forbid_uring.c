/* Runs a program for which io_uring is forbidden: forbid_uring PROGRAM [ARGUMENT...].
 *
 * A filter of system calls answers io_uring_setup with EPERM, as containers do. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (count < 2) {
        fprintf(stderr, "forbid_uring PROGRAM [ARGUMENT...]\n");
        return 1;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("no filter of system calls can be set");
        return 77;
    }
    if (syscall(SYS_io_uring_setup, 1, NULL) != -1 || errno != EPERM) {
        fprintf(stderr, "io_uring is not forbidden\n");
        return 1;
    }
    execv(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 1;
}
