package convo

import (
	"bytes"
	"strings"
	"testing"
)

// What Import accepted Export writes, and a second store takes all of that over.
func FuzzImport(f *testing.F) {
	const header = `{"format":"cellmux.conversations","version":1}` + "\n"
	f.Add(`{"session":"s","cell":"c","slot":0,"agent":"a","stored":"2026-11-30T12:00:00Z","delivery":"queued","message":{"id":"1","role":"user","content":[]}}`)
	f.Add(`{"session":"s","message":{"id":"1","content":[null,{"type":"text","text":"\ud800"}],"x": [1 , 2]}}` + "\n" + `{"session":"s","message":{"id":"1"}}`)
	f.Add(`{"session":"s","stored":"0001-01-01T00:00:00Z","delivery":"?","message":{"meta":{"sahara.shell_context":{"command":"ls"}}}}`)
	f.Add("{}\n\n{\xff")
	from, to := newService(f, nil), newService(f, nil)
	f.Fuzz(func(t *testing.T, lines string) {
		defer forgetAll(t, from, to)
		done, err := from.Import(t.Context(), strings.NewReader(header+lines))
		if err != nil && done.Messages == 0 {
			return
		}
		var first, second bytes.Buffer
		if err := from.Export(t.Context(), &first); err != nil {
			t.Fatalf("what was imported is not exported: %v", err)
		}
		again, err := to.Import(t.Context(), bytes.NewReader(first.Bytes()))
		if err != nil || again.Messages != done.Messages {
			t.Fatalf("%d messages, of them imported again %+v: %v", done.Messages, again, err)
		}
		if err := to.Export(t.Context(), &second); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("the second export differs:\n%s\n%s", first.Bytes(), second.Bytes())
		}
		if _, err := to.Search(t.Context(), Query{Text: "a*"}); err != nil {
			t.Fatal(err)
		}
	})
}

func forgetAll(t *testing.T, services ...*Service) {
	for _, s := range services {
		sessions, err := s.store.sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range sessions {
			if err := s.Forget(t.Context(), session); err != nil {
				t.Fatal(err)
			}
		}
	}
}
