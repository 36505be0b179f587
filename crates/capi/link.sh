#!/bin/sh
# Links libalongside.so from the static library: link.sh ARCHIVE OUT.
#
# Cargo's own shared library has no symbol versions: rustc gives the linker a version script of its
# own, without a name, and linkers refuse to combine it with another (or let the first one win).
set -eu
archive=$1
out=$2
here=$(dirname "$0")
"${CC:-cc}" -shared -o "$out" \
    -Wl,-soname,libalongside.so.0 \
    -Wl,--version-script="$here/alongside.map" \
    -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,defs,-z,nodelete -Wl,--as-needed \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    -lgcc_s -lpthread -ldl -lm -lc
