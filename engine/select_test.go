package engine_test

import (
	"context"
	"strings"
	"testing"

	"cellmux/engine"
)

func TestSelect(t *testing.T) {
	const docker = "docker 24.0.7 answers"
	cases := []struct {
		name   string
		choice engine.Choice
		down   []engine.Kind // engines that cannot be used
		kind   engine.Kind
		reason string // a part of it
		err    string // a part of it; then there is no engine
	}{
		{name: "nothing said", kind: engine.Host, reason: "default"},
		{name: "flag over all", choice: engine.Choice{EngineFlag: "docker", ConfigEngine: "tart", ConfigOS: "windows"}, kind: engine.Docker, reason: "--engine"},
		{name: "os flag over config", choice: engine.Choice{OSFlag: "macos", ConfigEngine: "docker"}, kind: engine.Tart, reason: "--os"},
		{name: "config engine over config os", choice: engine.Choice{ConfigEngine: "docker", ConfigOS: "windows"}, kind: engine.Docker, reason: "[cell] engine"},
		{name: "config os", choice: engine.Choice{ConfigOS: "winpe"}, kind: engine.Winkit, reason: "[cell] os"},
		{name: "host needs no probe", choice: engine.Choice{ConfigEngine: "host"}, down: []engine.Kind{engine.Host}, kind: engine.Host},

		{name: "linux", choice: engine.Choice{OSFlag: "linux"}, kind: engine.Docker},
		{name: "windows", choice: engine.Choice{OSFlag: "windows"}, kind: engine.Winkit},
		{name: "an old name", choice: engine.Choice{EngineFlag: "qemu"}, kind: engine.Winkit},
		{name: "a retired name", choice: engine.Choice{ConfigEngine: "vagrant"}, err: "retired"},
		{name: "an unknown engine", choice: engine.Choice{EngineFlag: "dokcer"}, err: "host, docker, tart, winkit, microvm and auto"},
		{name: "an unknown os in the config", choice: engine.Choice{ConfigOS: "plan9"}, err: "[cell] os"},

		{name: "explicit and unavailable is refused", choice: engine.Choice{EngineFlag: "docker"}, down: []engine.Kind{engine.Docker}, err: "no daemon answers"},
		{name: "configured and unavailable is refused", choice: engine.Choice{ConfigOS: "macos"}, down: []engine.Kind{engine.Tart}, err: "no daemon answers"},
		{name: "microvm without KVM is refused", choice: engine.Choice{ConfigEngine: "microvm"}, down: []engine.Kind{engine.MicroVM}, err: "microvm"},

		{name: "flags that agree", choice: engine.Choice{EngineFlag: "tart", OSFlag: "macos"}, kind: engine.Tart},
		{name: "flags that clash", choice: engine.Choice{EngineFlag: "tart", OSFlag: "windows"}, err: "--os windows and --engine tart are incompatible: --os windows means engine winkit"},
		{name: "auto and an os", choice: engine.Choice{EngineFlag: "auto", OSFlag: "windows"}, err: "incompatible"},
		{name: "a microvm is linux", choice: engine.Choice{EngineFlag: "microvm", OSFlag: "linux"}, kind: engine.MicroVM},
		{name: "the host is what it is", choice: engine.Choice{EngineFlag: "host", OSFlag: "linux", HostOS: "linux"}, kind: engine.Host},
		{name: "the host is not what it is not", choice: engine.Choice{EngineFlag: "host", OSFlag: "linux", HostOS: "darwin"}, err: "incompatible"},

		{name: "auto with a known agent", choice: engine.Choice{ConfigEngine: "auto", Agent: "claude"}, kind: engine.Docker, reason: docker},
		{name: "auto with its path", choice: engine.Choice{ConfigEngine: "auto", Agent: "/opt/bin/claude -p"}, kind: engine.Docker},
		{name: "auto with a command of the user's", choice: engine.Choice{ConfigEngine: "auto", Agent: "claude-next"}, kind: engine.Host, reason: `"claude-next" is not one of the agents`},
		{name: "auto with no agent", choice: engine.Choice{EngineFlag: "auto"}, kind: engine.Host},
		{name: "auto without docker", choice: engine.Choice{EngineFlag: "auto", Agent: "codex"}, down: []engine.Kind{engine.Docker}, kind: engine.Host, reason: "no daemon answers"},
		{name: "auto never takes a microvm", choice: engine.Choice{EngineFlag: "auto", Agent: "claude"}, down: []engine.Kind{engine.Docker, engine.Tart, engine.Winkit}, kind: engine.Host, reason: "narrowed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			probe := func(_ context.Context, k engine.Kind) engine.Availability {
				if k == engine.MicroVM && c.choice.EngineFlag == engine.Auto {
					t.Error("auto asked about microVMs")
				}
				for _, down := range c.down {
					if k == down {
						return engine.Availability{Reason: "no daemon answers"}
					}
				}
				return engine.Availability{Usable: true, Version: "24.0.7"}
			}
			got, err := engine.Select(context.Background(), c.choice, probe)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %+v, %v; want an error with %q", got, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != c.kind || got.Reason == "" || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("got %+v, want %s because %q", got, c.kind, c.reason)
			}
		})
	}
}

func TestSelectNamesAnOldWord(t *testing.T) {
	s, err := engine.Select(context.Background(), engine.Choice{ConfigEngine: "qemu"}, func(context.Context, engine.Kind) engine.Availability {
		return engine.Availability{Usable: true}
	})
	if err != nil || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "winkit") {
		t.Errorf("got %+v, %v; want a note about the new word", s, err)
	}
}
