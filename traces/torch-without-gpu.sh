#!/bin/sh
# Lets the torch of this environment be imported without the GPU libraries it is linked to (Linux, x86-64).
# Each missing library is replaced by an empty one; their functions exist, but nothing on a CPU calls them.
# Usage: torch-without-gpu.sh PYTHON   (the environment's python; needs cc, nm and readelf)
set -eu
cd "$("$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch/lib"
gpu='^(cublas|cudnn|cufft|cufile|cupti|cusolver|cusparse|nccl|nvrtc|nvshmem)'
nm -D --undefined-only libtorch*.so libc10_cuda.so | awk 'NF == 2 { sub(/@.*/, "", $2); print $2 }' |
    grep -iE "$gpu" | sort -u | sed 's/.*/int &(void) { return 1; }/' |
    cc -w -fno-builtin -shared -fPIC -x c -o libnogpu.so -Wl,-soname,libnogpu.so -
for name in $(readelf -d libtorch*.so libc10_cuda.so | sed -n 's/.*NEEDED.*\[lib\(.*\)\]/\1/p' | grep -iE "$gpu" | sort -u); do
    echo | cc -shared -fPIC -x c -o "lib$name" -Wl,-soname,"lib$name" -Wl,--no-as-needed -x none libnogpu.so -Wl,-rpath,'$ORIGIN' -x c -
done
"$1" -c 'import torch; torch.ones(2) @ torch.ones(2); print("torch", torch.__version__, "on the CPU")'
