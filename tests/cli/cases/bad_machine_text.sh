stretto plan --columns 2 --horizon 4 --machine 'host*0(cpu)'
