package protocol_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"cellmux/shellctx/protocol"
)

func decode(t *testing.T, text string) protocol.ChatMessage {
	t.Helper()
	var message protocol.ChatMessage
	if err := json.Unmarshal([]byte(text), &message); err != nil {
		t.Fatal(err)
	}
	return message
}

func TestUnknownKeysAndPartsSurviveByteForByte(t *testing.T) {
	kept := []string{
		`{ "b" : 1.50e+02, "a":[ 1,2 ] , "t":"<\u0041&>" }`,
		`9007199254740993`,
		`{"type":"image","data":  "AA==" , "x":null}`,
		`{"type":"text","text":"a","cache":  {"k":1.0}}`,
	}
	text := `{"zeta":` + kept[0] + `,"id":"m1","role":"user","content":[` + kept[2] + `,` + kept[3] + `],` +
		`"meta":{"k":` + kept[0] + `},"addr":{"task_id" : "t"},"ref":{"parent_id":"p" },"alpha":` + kept[1] + `}`
	message := decode(t, text)
	encoded, err := message.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(kept, `{"task_id" : "t"}`, `{"parent_id":"p" }`) {
		if !bytes.Contains(encoded, []byte(want)) {
			t.Errorf("%s is not in\n%s", want, encoded)
		}
	}
	if again := decode(t, string(encoded)); !reflect.DeepEqual(again.Extra, message.Extra) || !reflect.DeepEqual(again.Content, message.Content) {
		t.Errorf("second decoding differs:\n%+v\n%+v", again, message)
	}
}

func TestEmptyMessageIsComplete(t *testing.T) {
	encoded, err := protocol.ChatMessage{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"schema_version":"1.0","id":"","role":"","content":[],"addr":{},"meta":{}}`
	if string(encoded) != want {
		t.Fatalf("got  %s\nwant %s", encoded, want)
	}
}

func TestKnownKeysWinOverExtra(t *testing.T) {
	message := protocol.NewText("m1", protocol.User, "hi", time.Unix(0, 0))
	message.Extra = map[string]json.RawMessage{"role": json.RawMessage(`"system"`), "x": json.RawMessage(`1`)}
	encoded, err := message.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again := decode(t, string(encoded)); again.Role != protocol.User || string(again.Extra["x"]) != "1" {
		t.Fatalf("%s", encoded)
	}
}

func TestSetMetaLeavesSharedMapsAlone(t *testing.T) {
	first := protocol.NewText("m1", protocol.User, "hi", time.Unix(0, 0))
	if err := first.SetMeta("a", 1); err != nil {
		t.Fatal(err)
	}
	second := first
	if err := second.SetMeta("b", true); err != nil {
		t.Fatal(err)
	}
	if first.Flag("b") || !second.Flag("b") || second.Flag("a") {
		t.Fatalf("first %v, second %v", first.Meta, second.Meta)
	}
}

func TestTextReadsTextPartsAlone(t *testing.T) {
	message := decode(t, `{"content":[{"type":"text","text":"a"},{"type":"tool","text":"b"},{"type":"text","TEXT":"c"},7,null,{"type":"text","text":"d"}]}`)
	if got := message.Text(); got != "a\nd" {
		t.Fatalf("got %q", got)
	}
}

func TestWrongTypesAreErrors(t *testing.T) {
	for _, text := range []string{`null`, `[]`, `{"id":1}`, `{"content":{}}`, `{"meta":[]}`, `{"role":[]}`} {
		if err := json.Unmarshal([]byte(text), new(protocol.ChatMessage)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	broken := protocol.ChatMessage{Ref: json.RawMessage(`{`)}
	if encoded, err := broken.Encode(); err == nil {
		t.Errorf("a broken value was encoded: %s", encoded)
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(`{"id":"m","content":[{"type":"text","text":"x"}],"unknown":{"a": [1 ]}}`))
	f.Add([]byte(`{"meta":{"k":"\ud800"},"role":"user","content":[null, 1 ,"\u2028"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var message protocol.ChatMessage
		if json.Unmarshal(data, &message) != nil {
			return
		}
		encoded, err := message.Encode()
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		var again protocol.ChatMessage
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		for key, raw := range message.Extra {
			if !bytes.Equal(again.Extra[key], raw) {
				t.Fatalf("key %q: %s became %s", key, raw, again.Extra[key])
			}
		}
		for i, part := range message.Content {
			if !bytes.Equal(again.Content[i].Raw(), part.Raw()) {
				t.Fatalf("part %d: %s became %s", i, part.Raw(), again.Content[i].Raw())
			}
		}
		twice, err := again.Encode()
		if err != nil || !bytes.Equal(encoded, twice) {
			t.Fatalf("encoding is not stable (%v):\n%s\n%s", err, encoded, twice)
		}
	})
}
