# make run      installs tmux if it is missing, builds, starts the screen
# make test     installs what the tests need, then runs every test that needs no other service
# make test-real  the tests against real docker, agents, ssh and gh
# make bench    measures against the raw limits of this machine, in one run
# make screenshots  writes screenshots/*.png from a real run

GO    ?= go
TOOL  := $(GO) tool -modfile=.ci/tools.mod

.PHONY: run build test checks test-real bench screenshots

run: build
	@.ci/install tmux
	@bin/cellmux

build:
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/cellmux .

# What reads the code, before what runs it.
checks:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "not gofmt-ed: $$bad"; exit 1; fi
	@$(GO) mod tidy -diff
	@$(GO) vet ./...
	@GOOS=darwin $(GO) vet ./...
	@GOOS=windows $(GO) vet ./cell/... ./shellctx/...
	@$(TOOL) staticcheck ./...

test:
	@.ci/install tmux git cc
	@$(MAKE) --no-print-directory checks
	@$(TOOL) gotestsum --format pkgname-and-test-fails --format-icons text -- -race -timeout 9m ./...

test-real:
	@.ci/real

bench: build
	@.ci/install tmux
	@$(GO) run ./tui/bench -cellmux bin/cellmux
	-@$(GO) run ./shellctx/run/bench
	-@$(GO) run ./shellctx/convo/bench
	@.ci/dockerd run $(GO) run ./engine/docker/bench || [ $$? = 3 ] # 3: no daemon can be had, and why was said

screenshots: build
	@.ci/install tmux
	@.ci/screenshots
