command -v bash >/dev/null || { echo "no bash here"; exit 77; }
stretto help --completion bash | bash -n && stretto help --completion bash | tail -1
stretto help --man | head -1
