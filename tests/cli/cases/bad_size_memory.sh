stretto bench --hidden 65536 --layers 8 --batch 1 --context 4 --horizon 12 # terabytes
