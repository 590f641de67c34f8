# The menu; `make` lists it. The logic is in scripts/ and xtask/.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help run test foreign bench pictures fetch published coherence locks nodes kills power million quick check endure together lint fmt sim circuits fuzz metrics deny install dist clean
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
run: ## serve a directory and mount it until Ctrl-C; RTT=85 puts a line between, FROM=host:dir AT=mnt is the real thing
	@scripts/need run && scripts/run
test: ## run every test, real mounts in namespaces included; installs what they need
	@scripts/need test && scripts/test
bench: ## measure all workloads beside sshfs and local into docs/measurements; ARGS=--short for a first look
	@scripts/need bench && scripts/bench $(ARGS)
fetch: ; @scripts/need bench && scripts/fetch $(ARGS) ## fetch files as the PODOS File System did, beside its figures, into docs/measurements
published: ; @scripts/need bench && scripts/published $(ARGS) ## do what SNFS and an AFS-like system measured of themselves, servers killed, beside their figures
coherence: ## two clients and a program on the server change one tree, ten minutes a mode; what they saw is judged
	@scripts/coherence
locks: ; @scripts/locks ## RUNS=20 of programs that exclude each other, in each mode, with and without a journal, at RTT 0 and 10; ONLY=lease,mkdir
nodes: ; @scripts/nodes ## five nodes read each other's files while nodes are killed and return at random, five minutes
kills: ; @scripts/kills $(or $(KILLS),500) $(or $(SEED),1) $(or $(POWER),0) $(or $(CUTS),0) ## KILLS=500 of mount and server, POWER=0 cuts of its disk's power, CUTS=0 of the line, from SEED=1
pictures: ; @cargo run --quiet --package wirefs-figures -- picture ## draw the picture of the README from docs/measurements
million: ; @scripts/need run && scripts/million $(ARGS) ## walk a tree of 1,000,000 entries through a mount, and see what memory it takes; ARGS="--entries 20000"
power: ; @scripts/power ## CUTS=200 of the power of a disk with ext4 and one with xfs, in each of FILTER=storm|untar|sqlite|git|rewrite, from SEED=1
quick: ; @scripts/need build && scripts/quick ## test the crates that changed, without mounts; SINCE=COMMIT
check: ; @scripts/need build && cargo check --workspace --all-targets && cargo xtask layers tidy ## compile everything, and check layers and style
foreign: ; @scripts/need foreign && scripts/foreign ## run stress-ng, and PostgreSQL under kills, on a mount; XFSTESTS=DIR LTP=DIR: these too; PG=600 KILLS=20 (docs/FOREIGN.md)
endure: ; @scripts/need run && scripts/endure ## keep files in pings for ten minutes on lines that lose some, 1 % with 8+4, 0.1 % with two copies
together: ; @scripts/need run && scripts/together ## three nodes change one tree in pings for ten minutes; all roots are equal then
lint: ; @scripts/need lint && scripts/lint ## what CI checks beside the tests: format, clippy, layers, style, shell scripts
fmt: ; cargo fmt --all ## format the code
sim: ## run the simulation with SEEDS=20000 seeds from FROM=0 on, AHEAD=1: of a mount ahead of its server, RIVALS=1: of exclusive creations; one seed alone tells all
	@cargo run --quiet -p wirefs-sim -- $(if $(AHEAD),--ahead) $(if $(RIVALS),--rivals) --from $(or $(FROM),0) --seeds $(or $(SEEDS),20000)
circuits: ## simulate lives of circuits over bad cards with SEEDS=2000 seeds from FROM=0 on
	@CIRCUIT_FROM=$(or $(FROM),0) CIRCUIT_SEEDS=$(or $(SEEDS),2000) cargo test -q -p wirefs-circuit under_all_faults -- --nocapture
fuzz: ## run the property tests of all decoders with CASES=20000 cases each
	PROPTEST_CASES=$(or $(CASES),20000) BOLERO_RANDOM_ITERATIONS=$(or $(CASES),20000) cargo test --release -p wirefs-op -p wirefs-fuse
metrics: ; @cargo xtask metrics ## figures of the code
deny: ; @scripts/need deny && target/tools/bin/cargo-deny check ## licences and advisories of dependencies; installs cargo-deny (5 minutes)
install: ; @scripts/need build && PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install ## build for release and install to PREFIX=/usr/local
dist: ; @scripts/need dist && cargo xtask dist $(ARGS) ## packages, static programs and checksums of this commit, into target/dist/out; ARGS=x86_64
clean: ; rm -rf target try ## remove what builds and runs left here
