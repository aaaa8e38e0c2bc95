stretto bench --hidden 65536 --layers 8 --batch 1048576 --context 1000000 --horizon 12 --loss-steps last
