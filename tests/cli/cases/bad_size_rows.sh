stretto bench --hidden 4 --batch 1048576 --context 10000 --segment 1 --horizon 12 --loss-steps last
