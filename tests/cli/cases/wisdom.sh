unset XDG_CACHE_HOME
export STRETTO_WISDOM="$PWD/w"
shape="--hidden 16 --context 24 --segment 1 --horizon 4 --threads 1"
stretto bench $shape --repeat 1 >out || exit
grep -c " serial " out
sed -i "s/best=[a-z]*/best=ahead/" w
echo "a damaged line" >>w
stretto plan $shape --print | grep -o "(fwd lstm.0 .* how ahead"
stretto info --probe | grep "^# "
stretto info --probe >machine && stretto plan --machine machine $shape | head -1
