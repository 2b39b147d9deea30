package fleet

import "testing"

func TestParseRefReadsBackWhatStringWrote(t *testing.T) {
	for _, ref := range []Ref{{"api", 0}, {"api", 17}, {"api-2", WholeCell}} {
		got, err := ParseRef(ref.String())
		if err != nil || got != ref {
			t.Errorf("ParseRef(%q) = %v, %v", ref.String(), got, err)
		}
	}
}

func TestParseRefRefusesWhatNamesNoSlot(t *testing.T) {
	for _, text := range []string{"", ":0", "api:", "api:-1", "api:x", "api:01", "api:0:1", "api:+1"} {
		if got, err := ParseRef(text); err == nil {
			t.Errorf("ParseRef(%q) = %v, want an error", text, got)
		}
	}
}

func TestStatusWordsReadBack(t *testing.T) {
	for s := Unknown; s <= Stopped; s++ {
		got, err := ParseStatus(s.String())
		if err != nil || got != s {
			t.Errorf("ParseStatus(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseStatus("busy"); err == nil {
		t.Error("a word that is no status was accepted")
	}
	if Status(99).String() != "unknown" {
		t.Error("a value outside the statuses has a word")
	}
}
