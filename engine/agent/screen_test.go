package agent

import (
	"slices"
	"testing"
)

func TestScreensTellABoxFromAQuestion(t *testing.T) {
	asks := Box{Known: true, Asking: true, Reason: "it asks a question"}
	for _, test := range []struct {
		agent, screen string
		want          Box
	}{
		{"codex", "codex-idle", Box{Known: true, Ready: true}},
		{"codex", "codex-draft", Box{Known: true, Ready: true, Draft: "half typed"}},
		{"codex", "codex-permission", asks},
		{"gemini", "gemini-idle", Box{Known: true, Ready: true}},
		{"gemini", "gemini-draft", Box{Known: true, Ready: true, Draft: "half typed"}},
		{"gemini", "gemini-permission", asks},
		{"opencode", "opencode-idle", Box{Known: true, Ready: true}},
		{"opencode", "opencode-draft", Box{Known: true, Ready: true, Draft: "half typed"}},
		{"opencode", "opencode-busy", Box{Known: true, Ready: true, Busy: true}},
		{"opencode", "opencode-permission", asks},
	} {
		a, _ := New(Options{}).Lookup(test.agent)
		if got := a.Box(screen(t, test.screen), Status{State: Failed}); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.screen, got, test.want)
		}
		// A question known from any source is a question, whatever the screen says.
		if got := a.Box(screen(t, test.screen), Status{State: Waiting}); !got.Asking || got.Ready {
			t.Errorf("%s with a question known from elsewhere: %+v", test.screen, got)
		}
		if got := a.Box(Look{}, Status{}); got.Ready || got.Known {
			t.Errorf("%s without a screen: %+v, want unknown", test.agent, got)
		}
	}
}

func TestGeminiTakesNoMessageOfTheConversationForItsBox(t *testing.T) {
	look := screen(t, "gemini-idle")
	look.Rows = look.Rows[:slices.IndexFunc(look.Rows, isRule)]
	look.Rows = append(look.Rows, " > what the user said before")
	if b := geminiBox(look); b.Ready {
		t.Errorf("a resumed conversation without a box gives %+v", b)
	}
}

func TestQuestionsAreTakenFromTheScreen(t *testing.T) {
	for _, test := range []struct {
		got, want string
	}{
		{codexQuestion(screen(t, "codex-permission").Rows), "Would you like to run the following command? Environment: local Reason: need it $ touch made-by-tool && date"},
		{geminiQuestion(screen(t, "gemini-permission").Rows), "? Shell touch made-by-tool && date touch made-by-tool && date Allow execution of [Shell]?"},
	} {
		if test.got != test.want {
			t.Errorf("question %q, want %q", test.got, test.want)
		}
	}
}
