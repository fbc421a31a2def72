#!/bin/sh
# Writes the manual and the completions that packages carry: packaging/assets.sh BINARY, from the repository's root.
set -eu
kvsim=$1
cd "$(dirname "$0")/.."
share=packaging/wheel.data/data/share
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
    "$share/fish/vendor_completions.d"
"$kvsim" man "$share/man/man1"
"$kvsim" completions bash >"$share/bash-completion/completions/kvsim"
"$kvsim" completions zsh >"$share/zsh/site-functions/_kvsim"
"$kvsim" completions fish >"$share/fish/vendor_completions.d/kvsim.fish"
