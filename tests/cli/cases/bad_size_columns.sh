stretto bench --batch 1048576 --columns 100000 --horizon 12
