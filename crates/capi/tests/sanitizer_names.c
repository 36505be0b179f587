/* Names of the thread sanitizer of LLVM, which rustc uses, that the one of gcc lacks or that have to
 * do more here. Linked to the programs of sanitize.sh; what they call is watched by gcc's.
 *
 * The last owner of an `Arc` learns by a fence that the others are done with it: it counts down
 * with `Release`, and whoever comes to nothing goes on with `fence(Acquire)`. The sanitizer does
 * not know fences. Here it is told of this one: the thread that fences acquires the count that it
 * brought to nothing. A count without the fence, or one with another order, is as it was. */
#include <sanitizer/tsan_interface.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);
uint64_t __tsan_atomic64_fetch_add(volatile void *at, uint64_t more, int order);
uint64_t __tsan_atomic64_fetch_sub(volatile void *at, uint64_t less, int order);
void __tsan_atomic_thread_fence(int order);

static _Thread_local void *brought_to_nothing;

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int byte, size_t bytes)
{
    return memset(to, byte, bytes);
}

uint64_t __tsan_atomic64_fetch_sub(volatile void *at, uint64_t less, int order)
{
    uint64_t before = __tsan_atomic64_fetch_add(at, -less, order);
    brought_to_nothing = order == __ATOMIC_RELEASE && before == less ? (void *)at : NULL;
    return before;
}

/* Not watched: a fence in it would be a call of itself. */
__attribute__((no_sanitize("thread"))) void __tsan_atomic_thread_fence(int order)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (order == __ATOMIC_ACQUIRE && brought_to_nothing != NULL) {
        __tsan_acquire(brought_to_nothing);
        brought_to_nothing = NULL;
    }
}
