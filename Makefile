# `make help` lists what there is. Everything installs what it needs by itself, on a Debian machine with Go.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

TOOLS          := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubeone-tools/bin
GOLANGCI_LINT  := $(TOOLS)/golangci-lint-v2.15.0/golangci-lint
GOVULNCHECK    := $(TOOLS)/govulncheck-v1.8.0/govulncheck
CONTROLLER_GEN := $(TOOLS)/controller-gen-v0.21.0/controller-gen

VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.1.0+$$(git rev-parse --short HEAD 2>/dev/null || echo unknown))
LDFLAGS := -s -w -X kubeone/internal/cli.Version=$(VERSION)

# Packages whose coverage is measured, and the per cent of statements that their tests must reach.
COVERED  := ./internal/decide ./internal/decide/condition ./internal/decide/quorum ./internal/decide/skew ./internal/decide/fsm \
            ./internal/decide/match ./internal/decide/preflight ./internal/model/problem ./internal/plan ./internal/script
COVERAGE := 90

# Each package is tested once, either with coverage or with the race detector, which makes tests five times as slow.
# Without it: packages of pure functions and of shell scripts, and tests that compute for minutes on code whose own
# packages are tested with it.
NO_RACE  := /internal/(decide(/[a-z]+)?|plan(/step)?|model/problem|machines/rollout|componentconfig|script)$$|/test/(fields|sim|hostile)$$

# How long each fuzz test goes on.
FUZZTIME ?= 10m

# The same for everything but the race detector, so that a dependency is compiled once and not once for each tool.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath
export CGO_ENABLED := 0

.PHONY: help build demo check test unit e2e long lint tools vulns bench torture fuzz generate clean
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the program: bin/kubeone, one static file
	@hack/heartbeat.sh "building kubeone" go build -ldflags "$(LDFLAGS)" -o bin/kubeone ./cmd/kubeone

demo: ## bring up four bare hosts on this machine and make a cluster of them
	@hack/demo.sh

check: ## what a change must pass first: build, vet, golangci-lint if `make tools` has built it, short tests; needs Go only
	go build ./...
	go vet ./...
	go vet -tags e2e,long ./test/...
	@if [ -x $(GOLANGCI_LINT) ]; then $(GOLANGCI_LINT) run --allow-parallel-runners ./...; \
		else echo "golangci-lint is not there: make tools builds it"; fi
	hack/heartbeat.sh "short tests" go test -short -vet=off -p 4 ./...

test: lint unit e2e ## everything that must be green: lint, tests with race detector or coverage, scenarios on real hosts

unit: ## the tests of every package, with coverage or with the race detector
	@hack/need.sh gcc=gcc /usr/include/stdlib.h=libc6-dev shellcheck=shellcheck dash=dash bash=bash busybox=busybox fish=fish tcsh=tcsh ssh=openssh-client git=git
	hack/heartbeat.sh "tests with coverage" go test -cover -timeout 20m $$(go list ./... | grep -E '$(NO_RACE)') | \
		hack/coverage.sh $(COVERAGE) $(COVERED)
	CGO_ENABLED=1 hack/heartbeat.sh "tests with the race detector" \
		go test -race -p 5 -timeout 20m $$(go list ./... | grep -vE '$(NO_RACE)')

e2e: ## the life of a cluster on real hosts in containers (docker, root), Machines on a real API server
	@hack/need.sh git=git
	@test -n "$$(find test/e2e -name '*_test.go' 2>/dev/null)" || { echo "test/e2e has no tests" >&2; exit 1; }
	@hack/heartbeat.sh "building the lab" go build -o bin/lab ./test/lab
	@bin/lab prepare --kubernetes-version 1.36.1,1.36.3
	@log=$$(mktemp); failed=; \
	go test -tags e2e ./test/machines -count=1 -timeout 70m >"$$log" 2>&1 & machines=$$!; \
	go test -tags e2e ./test/e2e -count=1 -v -timeout 70m || failed=yes; \
	wait $$machines || failed=yes; \
	cat "$$log"; rm -f "$$log"; test -z "$$failed"

long: ## scenarios that take longer, listed in CONTRIBUTING.md; NAME=TestUpgrades runs one
	hack/heartbeat.sh "kubeone for another system" env GOOS=darwin CGO_ENABLED=0 go build -o /dev/null ./cmd/kubeone
	$(if $(NAME),,hack/heartbeat.sh "all worlds of decide" go test ./internal/decide -exhaustive)
	go test -tags e2e,long ./test/e2e ./test/lab/fleet ./test/lab/components -p 1 -count=1 -v -timeout 6h \
		$(if $(NAME),-run '^$(NAME)$$',-skip '^TestLifeOfACluster$$')

lint: $(GOLANGCI_LINT) $(CONTROLLER_GEN) vulns ## golangci-lint, shellcheck, line lengths, documented dependencies, generated files, known vulnerabilities
	@hack/need.sh shellcheck=shellcheck
	hack/heartbeat.sh "golangci-lint" $(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@hack/shellcheck.sh
	@hack/columns.sh
	@hack/dependencies.sh
	@hack/generate.sh $(CONTROLLER_GEN) --check

tools: $(GOLANGCI_LINT) $(CONTROLLER_GEN) ## build golangci-lint and controller-gen, once

vulns:
	@hack/vulns.sh $(GOVULNCHECK)

bench: ## start, plans over simulated hosts, an installation against one by hand, an empty plan, Machines
	go run ./bench

torture: ## kill installations, an upgrade, a repair and a change of settings at every boundary (goes on where it was stopped); 100,000 schedules in the simulated world
	go run ./test/torture
	go test ./test/sim -run Many -v -timeout 0 -schedules 100000 -machines 10000 -roles 10000

generate: $(CONTROLLER_GEN) ## what is made from the types of the API: copies of objects, CustomResourceDefinitions
	@hack/generate.sh $(CONTROLLER_GEN)

fuzz: ## every fuzz test, for FUZZTIME each (10m); what is found is kept below its package's testdata/fuzz
	@hack/fuzz.sh $(FUZZTIME)

clean: ## remove what was built, and the demo's lab
	rm -rf bin
	-go run ./test/lab down --name demo

$(GOLANGCI_LINT):
	@echo "building $(notdir $(@D)), once: some minutes"
	GOBIN=$(@D) hack/heartbeat.sh "building golangci-lint" go install -ldflags '-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

$(CONTROLLER_GEN):
	@echo "building $(notdir $(@D)), once: a minute"
	GOBIN=$(@D) hack/heartbeat.sh "building controller-gen" go install -ldflags '-s -w' sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0
