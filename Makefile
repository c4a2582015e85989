# Every target that a person calls has a ## comment; `make help` reads them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
export CGO_ENABLED := 0
# The services of AWS were made from their models and are half of what is compiled.
# Nothing in them is called often enough to be worth inlining, which would take a
# fifth more time and twice the memory, and make a program that is a fifth larger.
# What debuggers read takes an eighth of the time, and is not in the program anyway;
# who wants to debug runs `go build` by hand.
export GOFLAGS += -trimpath '-ldflags=-s -w' -gcflags=all=-dwarf=false '-gcflags=github.com/aws/aws-sdk-go-v2/service/...=-l -dwarf=false'

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BIN := bin/dlwb
LDFLAGS := -s -w -X github.com/dlwb/dlwb/cli.Version=$(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0

.PHONY: help agent build install demo e2e-aws e2e-hosts test test-again test-stories test-long test-podman test-moto test-slurm test-kubernetes test-sagemaker test-ecs test-backends test-arm64 chaos check bench bench-environments bench-nodes fuzz corpus generate screenshots logs clean test-environments test-frameworks test-cloudinit

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

AGENTS := internal/agentbin/dist/agent-linux-amd64.gz internal/agentbin/dist/agent-linux-arm64.gz
AGENT_SOURCE := $(shell find remote/agent remote/duplex remote/wire internal -name '*.go' ! -name '*_test.go') go.mod

agent: $(AGENTS) ## build the agents that dlwb brings to nodes

# gzip -n: the same bytes each time, so that a node keeps the agent that it has.
internal/agentbin/dist/agent-linux-%.gz: $(AGENT_SOURCE)
	GOOS=linux GOARCH=$* go build -buildvcs=false -o $(@:.gz=) ./remote/agent/dlwb-agent
	{ sha256sum $(@:.gz=) || shasum -a 256 $(@:.gz=); } 2>/dev/null | cut -c1-64 >$(@:.gz=.sum)
	wc -c <$(@:.gz=) >>$(@:.gz=.sum)
	gzip -9 -n -f $(@:.gz=)

build: agent ## build bin/dlwb, one static binary
	go build -ldflags '$(LDFLAGS)' -o $(BIN) .

install: agent ## install dlwb where go install puts programs
	go install -ldflags '$(LDFLAGS)' .

demo: build ## the main job on real input: train a model on two nodes of this machine
	./$(BIN) demo

e2e-aws: build ## the life of a cluster on the real EC2, with your account: a few cents, 1 USD at most
	sh internal/tools/e2e_aws.sh

e2e-hosts: build ## the life of a cluster on machines of yours: make e2e-hosts HOSTS="gpu1 gpu2"; says what held
	sh internal/tools/e2e_hosts.sh

test: agent ## install what the tests need and run them (RACE=1: with the race detector, and what this leaves out to be light)
	sh internal/tools/need.sh
	sh internal/tools/test.sh

test-again: agent ## make test with each test TIMES times (3) and four times as many at once: it finds what fails once in fifty runs
	sh internal/tools/need.sh
	TIMES=$${TIMES:-3} RACE=$${RACE-1} sh internal/tools/test.sh

test-stories: agent ## the long stories that make test leaves out to be light
	sh internal/tools/need.sh
	sh internal/tools/long.sh stories

test-long: agent ## what make test runs a sample of, whole: logins, lies, 10,000 ends of ranks
	sh internal/tools/need.sh
	sh internal/tools/long.sh

test-podman: agent ## images and runs in containers by a real podman, and what make test does over a container, which it leaves out where there is no podman
	sh internal/tools/need.sh podman
	DLWB_RIGS=1 go test -count=1 -v -timeout 30m -run 'Container|InTheImage|AnImageIsBuilt|UnchangedImage|SlowPodman' ./remote/transport ./remote ./remote/environment ./cloud/ownimage ./cli ./internal/hostsstory

test-environments: ## environments by uv and podman (and by conda, where DLWB_TEST_CONDA names one), kept in the user's cache directory
	sh internal/tools/need.sh podman
	python3 -m venv "$${XDG_CACHE_HOME:-$$HOME/.cache}/dlwb/uv" && "$${XDG_CACHE_HOME:-$$HOME/.cache}/dlwb/uv/bin/pip" install --quiet uv==0.13.9
	DLWB_RIGS=1 DLWB_TEST_UV="$${XDG_CACHE_HOME:-$$HOME/.cache}/dlwb/uv/bin/uv" go test -count=1 -v ./remote/environment

test-moto: ## the life of a cluster on moto, ministack and LocalEmu, stand-ins for AWS that others made (from PyPI, kept in the user's cache directory)
	sh internal/tools/moto.sh

test-cloudinit: ## what the real cloud-init makes of user-data (Debian or Ubuntu; unpacked into the user's cache directory, not installed)
	sh internal/tools/cloudinit.sh

test-frameworks: agent ## every engine with its real framework from PyPI (Horovod is built, for minutes), kept in the user's cache directory (FRAMEWORKS="-engines a,b"; -write makes the table in docs/engines.md)
	sh internal/tools/frameworks.sh $(FRAMEWORKS)

test-kubernetes: agent ## jobs on a real Kubernetes with Kubeflow's operators on this machine, built once into the user's cache (Linux, root)
	sh internal/tools/need.sh kubernetes
	nice sh internal/tools/k8srig.sh
	DLWB_RIGS=1 go test -count=1 -v -p 1 -timeout 60m ./cloud/kubernetes/... ./internal/kuberig/...

test-ecs: agent ## Ray clusters on ECS with a real Ray in the containers, and AWS's own model of each request, from PyPI
	sh internal/tools/ecs.sh

test-sagemaker: agent ## training jobs with AWS's own parts from PyPI: what the official SDK sends now, script mode by the real toolkit, moto
	sh internal/tools/sagemaker.sh

test-backends: test-slurm test-kubernetes ## the services that take whole jobs, real ones

test-slurm: agent ## the same over a node of a real Slurm on this machine, and the life of jobs there (Linux, root; DLWB_SLURMRIG is the script that makes it)
	sh internal/tools/need.sh slurm
	DLWB_RIGS=1 DLWB_KEYS=1 go test -count=1 -v -p 1 -timeout 30m -run Slurm ./remote/transport ./remote ./internal/slurmrig

test-arm64: ## the agent for arm64, by qemu
	sh internal/tools/need.sh arm64
	DLWB_RIGS=1 go test -count=1 -v -run Arm64 ./remote

chaos: agent ## cut, kill, freeze and fill real hosts at 200 moments (Linux, root; DLWB_TESTBED is the script that makes them)
	sh internal/tools/need.sh
	DLWB_CHAOS=$(or $(DLWB_CHAOS),200) go test -count=1 -v -timeout 2h ./internal/chaos
	DLWB_CUTS=$(or $(DLWB_CHAOS),200) go test -count=1 -v -timeout 3h -run RunDownRemovesNo ./internal/hostsstory

check: ## gofmt, vet, staticcheck, govulncheck, shellcheck
	sh internal/tools/check.sh '$(STATICCHECK)' '$(GOVULNCHECK)'

bench: agent ## benchmarks: the screen, the charts, the logs, the store
	go test -run '^$$' -bench . -benchmem ./ui/... ./metrics ./store ./sanitize ./remote ./remote/transfer ./internal/ec2story

corpus: ## what real frameworks print, beside the true values, into metrics/testdata/corpus; then reads it (CORPUS=names)
	python3 internal/corpus/corpus.py metrics/testdata/corpus $(CORPUS)
	go test -count=1 -v -run Corpus ./metrics

bench-environments: ## a first environment by uv and by pip, and an unchanged one, and image, on eight nodes (packages from the index, nothing cached)
	sh internal/tools/need.sh podman
	python3 -m venv "$${XDG_CACHE_HOME:-$$HOME/.cache}/dlwb/uv" && "$${XDG_CACHE_HOME:-$$HOME/.cache}/dlwb/uv/bin/pip" install --quiet uv==0.13.9
	DLWB_RIGS=1 DLWB_TEST_UV="$${XDG_CACHE_HOME:-$$HOME/.cache}/dlwb/uv/bin/uv" go test -run '^$$' -bench 'FirstEnvironment|Unchanged' -benchtime 3x ./remote/environment

bench-nodes: agent ## dlwb beside OpenSSH, pdsh, fabric, Ansible and rsync on real hosts (Linux, root); writes docs/bench.md
	sh internal/tools/need_bench.sh
	go run ./internal/nodesbench $(or $(NODES_BENCH),-write docs/bench.md)

fuzz: ## fuzz every parser of outside bytes for FUZZTIME (10s) each
	sh internal/tools/fuzz.sh $(or $(FUZZTIME),10s)

generate: ## write the schema and the reference pages anew
	go generate ./...

screenshots: ## draw the pictures in screenshots/ from the scenes of the tests
	go run ./internal/screenshots

logs: ## follow dlwb's own log (set DLWB_LOG to a file)
	tail -F "$${DLWB_LOG:?set DLWB_LOG to the file that dlwb writes}"

clean: ## remove what was built
	rm -rf bin
