package cfg

import "testing"

func TestParseVolume(t *testing.T) {
	for text, want := range map[string]Volume{
		"/p":           {"/p", "/p", false},
		"/p/":          {"/p", "/p", false},
		"/a:/b":        {"/a", "/b", false},
		"/a:/b:ro":     {"/a", "/b", true},
		"/a:/b:rw":     {"/a", "/b", false},
		"/a:/b:ro,z":   {"/a", "/b", true}, // upstream shows this one as read-write
		"/a/../c:/b/x": {"/c", "/b/x", false},
	} {
		if got, err := ParseVolume(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "a:/b", "~/a:/b", "/a:b", "/a:", ":/b", "/a:/b:", "/a:/b:rx", "/a:/b:ro:x"} {
		if got, err := ParseVolume(text); err == nil {
			t.Errorf("%q was taken as %+v", text, got)
		}
	}
}
