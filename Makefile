# The front door: muscle memory for what CMake and the scripts do.  Every target says the command it runs.
#
#   make              build (preset dev: assertions, debug information)
#   make test         unit, golden and corpus tests under ASan and UBSan
#   make check        test, plus floors, limits and documentation
#   make release      the fast build, in build/release
#   make asan tsan valgrind            tests under a tool
#   make fuzz T=csv S=60               one fuzz target (T) for S seconds; clang
#   make accuracy                      the protocols of bench/protocols, five seeds: bench/results/README.md
#   make accuracy-trees                beside LightGBM: bench/results/accuracy.md; PEER_PYTHON with lightgbm, mlforecast, pandas
#   make bench-steps                   best validation loss of default steps and of ten times as many: bench/results/steps.md
#   make bench-e2e bench-reader bench-kernels      measured beside the peers of bench/peers.sh; BENCH="--realtime --only lstm"
#   make bench-time                    one long series in slices of time: bench/results/time.md; BENCH=--realtime
#   make soak N=100 M=50               killed runs; every other trouble at M moments: bench/results/soak.md
#   make endurance N=100 S=300         hours: shake and soak N times, e2e three times over, every parser fuzzed for S seconds
#   make twin                          the same trainings in PyTorch, in f64: the same weights?
#   make shake N=100                   random configurations, each run in several ways: the same bits?
#   make bits                          trained weights against recorded checksums: bench/results/bits.tsv
#   make instructions                  instructions of whole trainings against bench/results/step-instructions.tsv
#   make bench-ranks                   steps on several ranks, beside DDP: bench/results/ranks.md
#   make bench-pipeline                input, computing, messages one after another or at once: bench/results/pipeline.md
#   make bench-stages                  pipelines of layers: waiting, beside PyTorch, memory of a rank: bench/results/stages.md
#   make bench-memory                  training from disk beside training in memory: bench/results/memory.md; BENCH="--turns 5"
#   make bench-memory-ranks            memory of ranks that share one reading: bench/results/memory-ranks.md
#   make bench-codecs                  wire codecs: GB/s and bytes saved, printed
#   make bench-stores                  stores and codecs: speed, loss, bytes, kills: bench/results/stores.md; BENCH="--part local"
#   make bench-placement-measured      placements of real nets on two ranks: bench/results/placement_measured.md
#   make bench-placement               placement methods in the simulator, against random and exact: bench/results/placement.md
#   make bench-predict                 predicted and measured steps of 40 configurations: bench/results/predict.md
#   make bench-devices                 training steps on a GPU beside PyTorch: bench/results/devices.md; BENCH="--device opencl --only S1" or --uneven
#   make oclgrind                      all tests of kernels on an emulator that checks every access: minutes
#   make soak-devices N=100            failures of devices in the middle of a training: section failures of bench/results/devices.md
#   make bench-python                  forecasts by 1, 2 and 8 threads of Python; memory of a training on a frame of 1 GB
#   make bench-spark-rows              rows of a Spark DataFrame into the trainer: bench/results/spark.md; BENCH="--rows 2000000"
#   make bench-spark-torch             Spark beside TorchDistributor: bench/results/spark.md; BENCH="--turns 5"
#   make bench-spark-uneven            busy tasks of Spark on uneven partitions: bench/results/spark.md
#   make bench-yarn                    how long a job on YARN takes to begin: bench/results/yarn.md
#   make bench-yarn-kills N=20         kill -9 of each part of a job on YARN: bench/results/yarn.md
#   make bench-learners                classify, forest, kmeans, crf, tagger, hmm, graphs beside other programs: bench/results/learners-*.md
#   make ladder                        which kernel got slower: ns, GF/s, instructions of each; ladder-baseline records them
#   make install PREFIX=/usr/local     program, libraries, header, manual page, completions
#   make wheel                         Python wheel with library and program inside: build/wheel
#   make site                          the documentation as a site: build/site/index.html
#   make docs                          pages that follow the tables (tools/docsync.py --write)
J := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PREFIX ?= /usr/local
T ?= csv
S ?= 60
CTEST = ctest -j $(J) --output-on-failure

all: build/dev/build.ninja
	cmake --build build/dev -j $(J)

build/%/build.ninja: CMakePresets.json
	cmake --preset $*

release: build/release/build.ninja
	cmake --build build/release -j $(J)

asan: build/asan/build.ninja
	cmake --build build/asan -j $(J)
	cd build/asan && $(CTEST) -LE 'slow|tools'

test: asan

tools:
	python3 tools/floors.py
	python3 tools/limits.py
	python3 tools/docsync.py

check: tools test

# The thread-bearing floors under TSan.
tsan: build/tsan/build.ninja
	cmake --build build/tsan -j $(J)
	cd build/tsan && $(CTEST) -LE 'slow|tools|fuzz'

valgrind: build/valgrind/build.ninja
	cmake --build build/valgrind -j $(J)
	cd build/valgrind && ctest -j $(J) -T memcheck -L unit --output-on-failure

fuzz: build/fuzz/build.ninja
	cmake --build build/fuzz -j $(J) --target fuzz_$(T)
	mkdir -p build/fuzz/found/$(T)
	build/fuzz/tests/fuzz/fuzz_$(T) -max_total_time=$(S) -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/found/$(T)/crash- build/fuzz/found/$(T) tests/fuzz/corpus/$(T)

N ?= 100
M ?= 50
twin: release
	python3 bench/twin.py build/release/cli/stretto

shake: release
	python3 bench/shake.py build/release/cli/stretto $(N)
	python3 bench/shake.py build/release/cli/stretto $(N) --cuts

# check against train on generated files: make agree N=1000
agree: release
	python3 bench/agree.py build/release/cli/stretto $(N)

bits: release
	python3 bench/bits.py build/release/cli/stretto

instructions: release
	python3 bench/instructions.py build/release/cli/stretto

soak: release
	python3 bench/soak.py build/release/cli/stretto $(N) 1 $(M)

oclgrind: release
	python3 tests/gpu/oclgrind.py build/release/tests/gpu/t_gpu_kern build/release/tests/gpu/t_gpu_layer build/release/tests/gpu/t_gpu_learners

soak-devices: release
	python3 bench/devices/failures.py build/release/cli/stretto $(N)

endurance: shake soak
	STRETTO_TEST_MANY=1 ctest --test-dir build/release -L e2e --repeat until-fail:3 --output-on-failure
	for t in $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)); do $(MAKE) fuzz T=$$t S=$(S) || exit 1; done

accuracy: release
	STRETTO_BUILD=build/release bench/accuracy/run.py

PEER_PYTHON ?= .peers/bin/python
accuracy-trees: release
	STRETTO_BUILD=build/release $(PEER_PYTHON) bench/accuracy/trees.py --write $(BENCH)

bench-steps: release
	STRETTO_BUILD=build/release bench/accuracy/steps.py $(BENCH)

bench-e2e: release
	STRETTO_BUILD=build/release bench/e2e/run.py

bench-reader: release
	cmake --build build/release -j $(J) --target bench_reader
	bench/reader/run.sh build/release

# The opponents first (an ignored folder), then a quarter of an hour of turns, then the page.
bench-kernels: release
	cmake --build build/release -j $(J) --target bench_step bench_calib
	bench/peers.sh
	bench/kern/run.py build/release $(BENCH)
	bench/kern/report.py

# One long series in slices of time, beside the same without and PyTorch; nets trained anew and their rounds: bench/results/time.md.
bench-time: release
	cmake --build build/release -j $(J) --target bench_slices
	bench/peers.sh
	bench/time/run.py build/release $(BENCH)
	bench/time/report.py

# Steps on two ranks, beside PyTorch's DDP: bench/results/ranks.md; BENCH=--realtime
bench-ranks: release
	bench/peers.sh
	cmake --build build/release -j $(J) --target bench_allreduce
	bench/ranks/run.py build/release $(BENCH)

# Two ranks over a line that is emulated; BENCH="--realtime --turns 3".
bench-pipeline: release
	cmake --build build/release -j $(J) --target bench_pipeline
	bench/pipeline/run.py build/release $(BENCH)

# Layers in stages, beside torch.distributed.pipelining, a quarter of an hour; BENCH="--realtime --turns 3 --part memory".
bench-stages: release
	bench/peers.sh
	bench/stages/run.py build/release $(BENCH)

# Wire codecs on one core; CODECS="sign topk:0.001" for some. bench/results/codecs.md holds a run.
bench-codecs: release
	cmake --build build/release -j $(J) --target bench_codec
	build/release/bench/codec/bench_codec 1 $(CODECS)

# Stores and codecs, an hour with all parts; beside PyTorch's hooks. BENCH="--first --part straggler".
bench-stores: release
	bench/peers.sh
	cmake --build build/release -j $(J) --target bench_store_path
	bench/stores/run.py build/release $(BENCH)

# Placement methods on the grid of graphs and machines, some minutes; BENCH="--every 23" for a sample.
bench-placement: release
	cmake --build build/release -j $(J) --target bench_placement
	bench/placement/run.py build/release $(BENCH)

# Placements of real nets on two ranks, six minutes a turn; BENCH="--turns 3 --realtime".
bench-placement-measured: release
	bench/placement/measured.py build/release $(BENCH)

# Predicted and measured steps of 40 configurations, four minutes a turn; BENCH="--turns 5 --limit 600 --realtime".
bench-predict: release
	bench/predict/run.py build/release $(BENCH)

# Steps on a device beside PyTorch ($PEER_PYTHON) on the same GPU, two minutes; BENCH=--uneven: several PoCL devices.
bench-devices: release
	cmake --build build/release -j $(J) --target bench_devices bench_uneven
	bench/devices/run.py build/release $(BENCH)

# Forecasts by threads of Python, a minute; BENCH="--turns 9".
bench-python: release
	"$$(sh tools/python_venv.sh | tail -n 1)" bench/python/threads.py build/release $(BENCH)
	"$$(sh tools/python_venv.sh | tail -n 1)" bench/python/memory.py

# Rows of a DataFrame beside a loop of tensors and the CSV file, ten minutes, 5 GB of disk.
bench-spark-rows: release
	tools/spark_venv.sh torch
	build/spark-venv/bin/python bench/spark/rows.py build/release $(BENCH)

# Seconds to a loss beside TorchDistributor, four minutes; busy tasks on uneven partitions, one: bench/results/spark.md.
bench-spark-torch: release
	tools/spark_venv.sh torch
	build/spark-venv/bin/python bench/spark/torch_distributor.py build/release $(BENCH)

bench-spark-uneven: release
	tools/spark_venv.sh
	build/spark-venv/bin/python bench/spark/uneven.py build/release $(BENCH)

bench-yarn: release
	bench/yarn/run.py build/release/cli/stretto $(BENCH)

bench-yarn-kills: release
	python3 bench/yarn/kills.py build/release/cli/stretto $(or $(N),20)

# Learners beside their peers on shared data, in an ignored folder (bench/peers.sh learners): bench/results/learners-*.md.  CoNLL-2000 and
# tables are those of ../shared/data.  Wapiti: build it from source and call bench/learners/crf.py with --wapiti.
SHARED ?= ../shared
bench-learners: release
	bench/peers.sh learners
	cmake --build build/release -j $(J) --target bench_viterbi
	.peers/bin/python bench/learners/forest.py --stretto build/release/cli/stretto --shared $(SHARED)
	.peers/bin/python bench/learners/kmeans.py build/release/cli/stretto
	.peers/bin/python bench/learners/graph.py build/release/cli/stretto
	.peers/bin/python bench/learners/viterbi.py build/release
	.peers/bin/python bench/learners/tagger.py build/release/cli/stretto $(SHARED)/data/conll2000/train.txt
	.peers/bin/python bench/learners/classify.py build/release/cli/stretto $(SHARED)/data/seq_classification
	.peers/bin/python bench/learners/crf.py build/release/cli/stretto --train $(SHARED)/data/conll2000/train.txt \
	    --test $(SHARED)/data/conll2000/test.txt --template bench/learners/chunk.tpl --crfsuite .peers/bin/python
	python3 bench/learners/crf_trainers.py build/release/cli/stretto --train $(SHARED)/data/conll2000/train.txt \
	    --test $(SHARED)/data/conll2000/test.txt --template bench/learners/chunk.tpl

ladder: release
	cmake --build build/release -j $(J) --target bench_step
	bench/kern/ladder.py build/release/bench/kern/bench_step

ladder-baseline: release
	cmake --build build/release -j $(J) --target bench_step
	bench/kern/ladder.py build/release/bench/kern/bench_step --write

# A tree without tests: installing needs no test library.
build/install/build.ninja: CMakePresets.json
	cmake --preset release -B build/install -DSTRETTO_TESTS=OFF

install: build/install/build.ninja
	cmake --build build/install -j $(J)
	cmake --install build/install --prefix $(abspath $(PREFIX))

wheel:
	tools/wheel.sh

site:
	tools/site.sh

docs:
	python3 tools/docsync.py --write

clean:
	rm -rf build/dev build/release build/asan build/tsan build/valgrind build/fuzz build/install

bench-memory: release
	bench/memory/run.py build/release $(BENCH)

bench-memory-ranks: release
	bench/memory/ranks.py build/release $(BENCH)

.PHONY: bench-python bench-spark-rows bench-spark-torch bench-spark-uneven bench-memory bench-memory-ranks soak-devices oclgrind all agree endurance release asan test tools check tsan valgrind fuzz accuracy accuracy-trees bench-steps bench-e2e bench-reader bench-kernels bench-time bench-ranks bench-pipeline bench-stages bench-codecs bench-stores bench-placement bench-placement-measured bench-predict bench-devices bench-yarn bench-yarn-kills bench-learners twin shake bits instructions soak ladder ladder-baseline install wheel site docs clean
