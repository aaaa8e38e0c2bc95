# Rows by what is free: the second host has a quarter of the first one's speed left, and gets about a quarter of its rows.
for shares in 1,1 1,0.25 0.2,1; do
    stretto plan --machine "host*2(gpu) shares=$shares" --horizon 12 --context 24 --batch 320 --parallel data_sync:2 --print |
        sed -n "s/.*(fwd lstm.0 \(b[^ ]*\) [^ ]* \(@[^ ]*\) .*/shares=$shares \1 \2/p"
done
