#!/bin/bash
# SPDX-License-Identifier: MIT
# builds: one
# PyTorch, CuPy, JAX and Triton under moat on a GPU: small programs (test/gpu/frameworks.py) run as without
# it, and a copy past the end of an array is found where the array is a buffer of its own: with --unpool, with
# --torch-alloc. Programs whose pool hides the error must run as without moat.
# MOAT: the command; PYTHON: which Python; SECTION=FILE: writes a table of the results there: bench/section
# guard-frameworks <FILE puts it into doc/results.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
nvidia-smi -L >/dev/null 2>&1 || { echo 'no GPU on this machine'; exit 77; }
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo 'no python3 on this machine'; exit 77; }
moat=${MOAT:-$PWD/bin/moat}
[ -x "$moat" ] || { echo "no moat at $moat"; exit 77; }
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
unset NVTX_INJECTION64_PATH PYTORCH_NO_CUDA_MEMORY_CACHING XLA_PYTHON_CLIENT_ALLOCATOR \
    XLA_PYTHON_CLIENT_PREALLOCATE
# Several at a time on one GPU.
export XLA_CLIENT_MEM_FRACTION=.1 TF_CPP_MIN_LOG_LEVEL=2 TRITON_CACHE_DIR=$T/triton \
    TORCHINDUCTOR_CACHE_DIR=$T/inductor
export CUPY_CACHE_DIR=$T/cupy PYTHONUNBUFFERED=1

# Framework, program, status, what the output must contain, what it must not contain, options or variables (-:
# none).
rows='
torch torch_train 0 ^trained ERROR -
torch torch_train 0 ^trained ERROR --unpool
torch torch_train 0 PyTorch.allocates.through.moat ERROR --torch-alloc
torch torch_train 0 ^trained ERROR --mode=pages --torch-alloc
torch torch_train 0 ^trained ERROR --mode=canary
torch torch_train 0 ^trained ERROR --mode=canary --unpool
torch torch_graph 0 ^replayed ERROR --mode=canary --torch-alloc
torch torch_overflow 0 ^result.0 ERROR -
torch torch_overflow 97 heap-buffer-overflow ^result.0 --unpool
torch torch_overflow 97 heap-buffer-overflow ^result.0 --torch-alloc
torch torch_overflow 97 heap-buffer-overflow ^result.0 PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
torch torch_use_after_free 0 ^result.0 ERROR -
torch torch_use_after_free 97 heap-use-after-free ^result.0 --unpool
torch torch_use_after_free 97 heap-use-after-free ^result.0 --torch-alloc
torch torch_graph 0 ^replayed ERROR -
torch torch_graph 0 ^replayed ERROR --torch-alloc
torch torch_no_memory 0 ^refused ERROR --torch-alloc
torch torch_compile 0 ^compiled ERROR --torch-alloc
cupy cupy_run 0 ^computed ERROR -
cupy cupy_run 0 ^computed ERROR --unpool
cupy cupy_overflow 0 ^result.0 ERROR -
cupy cupy_overflow 97 heap-buffer-overflow ^result.0 --unpool
jax jax_run 0 ^computed ERROR -
jax jax_run 0 ^computed ERROR --unpool
jax jax_overflow 0 ^result.0 ERROR -
jax jax_overflow 97 heap-buffer-overflow ^result.0 --unpool
jax jax_run 0 ^computed ERROR --mode=pages --unpool
jax jax_run 0 ^computed ERROR --mode=canary --unpool
cupy cupy_run 0 ^computed ERROR --mode=canary --unpool
triton triton_run 0 ^computed ERROR -
triton triton_run 0 ^computed ERROR --torch-alloc
'

has() {
    "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2>/dev/null
}

one() {  # one NUMBER FRAMEWORK PROGRAM STATUS SAYS NOT OPTION...: a line for the table in $T/NUMBER
    local number=$1 framework=$2 program=$3 wanted=$4 says=$5 not=$6 status word=found log=$T/$1.log
    shift 6
    local text="$*" command=(env)
    case $1 in
    -) text='' command+=("$moat" --device=gpu) ;;
    [A-Z]*=*) command+=("$1" "$moat" --device=gpu) ;;
    *) command+=("$moat" --device=gpu "$@") ;;
    esac
    timeout 240 "${command[@]}" "$python" test/gpu/frameworks.py "$program" >"$log" 2>&1 </dev/null
    status=$?
    [ "$wanted" = 97 ] || word='runs'
    if [ $status = "$wanted" ] && grep -Eq -- "$says" "$log" && ! grep -Eq -- "$not" "$log"; then
        echo "pass | $framework | $program | $text | $word |" >"$T/$number"
    else
        echo "fail | $framework | $program | $text | **status $status** |" >"$T/$number"
    fi
}

missing=
declare -A known
number=100
while read -r framework program status says not options; do
    [ -n "$framework" ] || continue
    if [ -z "${known[$framework]:-}" ]; then
        has "$framework" && known[$framework]=yes || known[$framework]=no
        [ "${known[$framework]}" = yes ] || missing+=" $framework"
    fi
    [ "${known[$framework]}" = yes ] || continue
    case $program in *"${ONLY:-}"*) ;; *) continue ;; esac
    number=$((number + 1))
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-6}" ]; do wait -n; done
    # shellcheck disable=SC2086
    one $number "$framework" "$program" "$status" "$says" "$not" $options &
done <<<"$rows"
wait
[ $number -gt 100 ] || { echo "not on this machine:$missing"; exit 77; }

passed=$(cat "$T"/[0-9][0-9][0-9] | grep -c ^pass)
failed=$(cat "$T"/[0-9][0-9][0-9] | grep -c ^fail)
for f in "$T"/[0-9][0-9][0-9]; do
    grep -q ^fail "$f" || continue
    sed 's/^fail | /FAIL /' "$f"
    tail -n 40 "$f.log" | sed 's/^/    | /'
done
result="$passed passed, $failed failed"
[ -z "$missing" ] || result+="; not on this machine:$missing"
if [ -n "${SECTION:-}" ]; then
    {
        echo '## Frameworks under the guard, on a GPU'
        echo
        bench/machine
        echo
        echo '| framework | program | options | result |'
        echo '| --- | --- | --- | --- |'
        sed 's/^[a-z]*//; s/^ //' "$T"/[0-9][0-9][0-9]
        printf '\n%s.\n' "$result"
    } >"$SECTION"
fi
[ -z "${KEEP:-}" ] || tar -C "$T" -czf "$KEEP" --exclude=triton --exclude=inductor --exclude=cupy .
echo "$result"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
