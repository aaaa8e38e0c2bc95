# slices of time on machines one does not have
stretto plan --horizon 1 --context 4096 --batch 1 --machine 'host*2(core*4)' --compare
stretto plan --horizon 1 --context 4096 --batch 1 --machine 'host*2(core*4)' --compare --forgets 700 | tail -2
# a short window is cut too, if that is wanted
stretto plan --horizon 1 --context 336 --batch 1 --machine 'core*4' --compare | grep time_slice
