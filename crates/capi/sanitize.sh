#!/bin/bash
# Runs the C tests with the library under sanitizers: sanitize.sh [address|thread]...
#
# Both sides are instrumented: the programs by gcc, the library by nightly Rust, which is needed for
# it; not Rust's standard library, which comes built. gcc's runtime serves both. What the thread
# sanitizer cannot know of the standard library stands in tests/sanitizer_names.c and
# sanitizer.supp; that it still sees a race is tested first. Left out: what the sanitizers
# themselves cannot do (overflowing stacks on purpose, 100,000 stacks, OpenMP's own uninstrumented
# threads).
set -euo pipefail
shopt -s inherit_errexit
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/target/sanitize
triple=$(rustc -vV | sed -n 's/^host: //p')
export ASAN_OPTIONS=detect_stack_use_after_return=0
export TSAN_OPTIONS="suppressions='$here/sanitizer.supp'"

helpers=" forbid_uring sanitizer_names unordered unsettled until_killed "
declare -A left_out=(
    [address]=" ends in_flight "
    [thread]=" ends in_flight openmp "
)
declare -A rust_flags=(
    [address]="-Zsanitizer=address"
    [thread]="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg=watched"
)

build() { # build KIND: the library; says where it is
    local kind=$1
    RUSTFLAGS=${rust_flags[$kind]} CARGO_TARGET_DIR="$target/$kind" \
        cargo +nightly build --quiet --locked --package alongside-capi --target "$triple"
    echo "$target/$kind/$triple/debug"
}

compile_names() { # names that gcc's thread sanitizer lacks, for every program; always in C
    gcc -std=gnu11 -O1 -g -fsanitize=thread -fno-builtin -c "$here/tests/sanitizer_names.c" \
        -o "$target/thread/sanitizer_names.o"
}

compile() { # compile KIND LIBRARIES SOURCE: one program; says where it is
    local kind=$1 libraries=$2 source=$3 program more=() compiler=(gcc -std=gnu11)
    program=$target/$kind/$(basename "${source%.*}")
    [ "${source##*.}" = cpp ] && compiler=(g++ -std=c++17)
    [ "$kind" = thread ] && more=(-fno-builtin -rdynamic "$target/$kind/sanitizer_names.o")
    [ "$(basename "$program")" = openmp ] && more+=(-fopenmp)
    "${compiler[@]}" -O1 -g -fsanitize="$kind" -I"$here/include" "$source" "${more[@]}" \
        -o "$program" -L"$libraries" -Wl,-rpath,"$libraries" \
        -Wl,--allow-shlib-undefined -lalongside -lpthread
    echo "$program"
}

run() { # run PROGRAM ENGINE: the exit code; what the program said is in PROGRAM.log
    local status=0
    (cd "$target" && ALONGSIDE_ENGINE=$2 "$1") > "$1.log" 2>&1 || status=$?
    echo $status
}

judge() { # judge KIND PROGRAM: runs it with both engines, and counts
    local kind=$1 program=$2 engine status
    for engine in auto threads; do
        status=$(run "$program" $engine)
        case $status in
            0) passed=$((passed + 1)) ;;
            77) skipped=$((skipped + 1)) ;;
            *)
                failed=$((failed + 1))
                echo "$kind: $(basename "$program") on $engine: $status" >&2
                cat "$program.log" >&2
                ;;
        esac
    done
}

check_sight() { # check_sight LIBRARIES: whether the thread sanitizer sees what tasks do
    local program engine status race='data race .*/unordered\.c:.* in counts'
    program=$(compile thread "$1" "$here/tests/unordered.c")
    for engine in auto threads; do
        status=$(run "$program" $engine)
        if [ "$status" -ne 66 ] || ! grep -q "$race" "$program.log"; then
            echo "thread: the race of unordered on $engine was not seen: $status" >&2
            cat "$program.log" >&2
            exit 1
        fi
    done
}

all_failed=0
[ $# -gt 0 ] || set -- address thread
for kind in "$@"; do
    passed=0 skipped=0 failed=0
    libraries=$(build "$kind")
    if [ "$kind" = thread ]; then
        compile_names
        check_sight "$libraries"
    fi
    for source in "$here"/tests/*.c "$here"/tests/*.cpp; do
        name=$(basename "${source%.*}")
        case "$helpers${left_out[$kind]}" in *" $name "*) continue ;; esac
        program=$(compile "$kind" "$libraries" "$source")
        judge "$kind" "$program"
    done
    echo "$kind: $passed runs passed, $skipped skipped, $failed failed"
    all_failed=$((all_failed + failed))
done
exit $((all_failed > 0))
