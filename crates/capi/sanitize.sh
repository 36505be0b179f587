#!/bin/bash
# Runs the C tests with the library under sanitizers: sanitize.sh [address|thread]...
#
# Both sides are instrumented: the programs by gcc, the library by nightly Rust (which is needed for
# it; the thread sanitizer also needs its component rust-src, as the standard library has to be
# instrumented too). gcc's runtime serves both. Left out: what the sanitizers themselves cannot do
# (overflowing stacks on purpose, 100,000 stacks, OpenMP's own uninstrumented threads).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/target/sanitize
triple=$(rustc -vV | sed -n 's/^host: //p')
export ASAN_OPTIONS=detect_stack_use_after_return=0

declare -A left_out=(
    [address]=" ends in_flight "
    [thread]=" ends in_flight openmp typed "
)

build() { # build KIND: the library; says where it is
    local kind=$1 std=()
    [ "$kind" = thread ] && std=(-Zbuild-std)
    RUSTFLAGS="-Zsanitizer=$kind" CARGO_TARGET_DIR="$target/$kind" \
        cargo +nightly build --quiet "${std[@]}" --package alongside-capi --target "$triple"
    echo "$target/$kind/$triple/debug"
}

run() { # run KIND LIBRARIES SOURCE: one program, with both engines; says what failed
    local kind=$1 libraries=$2 source=$3 name more=() compiler=(gcc -std=gnu11)
    name=$(basename "${source%.*}")
    [ "${source##*.}" = cpp ] && compiler=(g++ -std=c++17)
    [ "$kind" = thread ] && more=(-fno-builtin -rdynamic "$here/tests/sanitizer_names.c")
    [ "$name" = openmp ] && more+=(-fopenmp)
    "${compiler[@]}" -O1 -g -fsanitize="$kind" -I"$here/include" "$source" "${more[@]}" \
        -o "$target/$kind/$name" -L"$libraries" -Wl,-rpath,"$libraries" \
        -Wl,--allow-shlib-undefined -lalongside -lpthread
    for engine in auto threads; do
        local status=0
        (cd "$target" && ALONGSIDE_ENGINE=$engine "$target/$kind/$name") \
            > "$target/$kind/$name.log" 2>&1 || status=$?
        if [ $status -ne 0 ] && [ $status -ne 77 ]; then
            echo "$kind: $name on $engine: $status" >&2
            cat "$target/$kind/$name.log" >&2
            return 1
        fi
    done
}

failed=0
[ $# -gt 0 ] || set -- address thread
for kind in "$@"; do
    libraries=$(build "$kind")
    for source in "$here"/tests/*.c "$here"/tests/*.cpp; do
        name=$(basename "${source%.*}")
        case " forbid_uring sanitizer_names unsettled until_killed ${left_out[$kind]} " in
            *" $name "*) continue ;;
        esac
        run "$kind" "$libraries" "$source" || failed=$((failed + 1))
    done
    echo "$kind: done, $failed failed so far"
done
exit $((failed > 0))
