package shellctx_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

func TestRecordWireForm(t *testing.T) {
	encoded, err := json.Marshal(shellctx.Record{Command: "ls", CWD: "/p"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"command":"ls","cwd":"/p","exit_code":0,"trigger_agent":false}`; string(encoded) != want {
		t.Fatalf("got %s, want %s", encoded, want)
	}
	if shellctx.MetaKey != "sahara.shell_context" || shellctx.CommitAckMetaKey != "sahara.shell_context_committed" {
		t.Fatal("the keys are part of the wire form")
	}
}

func TestPutAndFromMessage(t *testing.T) {
	record := shellctx.Record{Command: "make", CWD: "/p", Output: "x\n", ExitCode: 2, Error: "exit status 2", OutputBytes: 2, TriggerAgent: true}
	original := protocol.NewText("m", protocol.User, "hi", time.Unix(0, 0))
	message := original
	if err := shellctx.Put(&message, record); err != nil {
		t.Fatal(err)
	}
	if _, found := shellctx.FromMessage(original); found {
		t.Fatal("Put changed the message that it was copied from")
	}
	if got, ok := shellctx.FromMessage(message); !ok || !reflect.DeepEqual(got, record) {
		t.Fatalf("got %+v, %v", got, ok)
	}
	if err := shellctx.Put(&message, shellctx.Record{Command: " \n"}); err == nil {
		t.Fatal("a blank command was accepted")
	}
}

func TestFromMessageRefusesWhatIsNoRecord(t *testing.T) {
	for name, raw := range map[string]string{"bad JSON": `{`, "no command": `{"cwd":"/"}`, "blank": `{"command":"  "}`, "wrong type": `{"command":1}`, "null": `null`} {
		message := protocol.ChatMessage{Meta: map[string]json.RawMessage{shellctx.MetaKey: json.RawMessage(raw)}}
		if _, ok := shellctx.FromMessage(message); ok {
			t.Errorf("%s: a record was found", name)
		}
	}
}

func TestContextOnlyIsReadFromMetadata(t *testing.T) {
	text := shellctx.ContextText(shellctx.Record{Command: "ls"})
	if shellctx.IsContextOnly(protocol.NewText("m", protocol.User, text, time.Unix(0, 0))) {
		t.Error("text alone made a message context-only")
	}
	for trigger, want := range map[bool]bool{false: true, true: false} {
		message, err := shellctx.NewMessage("m", shellctx.Record{Command: "ls", TriggerAgent: trigger}, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if got := shellctx.IsContextOnly(message); got != want {
			t.Errorf("trigger %v: context-only %v", trigger, got)
		}
	}
}

func TestCommitAck(t *testing.T) {
	original := protocol.NewText("m", protocol.Assistant, "", time.Unix(0, 0))
	if err := original.SetMeta("k", 1); err != nil {
		t.Fatal(err)
	}
	ack := original
	shellctx.MarkCommitAck(&ack)
	if !shellctx.IsCommitAck(ack) || shellctx.IsCommitAck(original) {
		t.Fatalf("ack %v, original %v", ack.Meta, original.Meta)
	}
	if err := ack.SetMeta(shellctx.CommitAckMetaKey, "true"); err != nil {
		t.Fatal(err)
	}
	if shellctx.IsCommitAck(ack) {
		t.Fatal("a string counted as true")
	}
}

func TestDisplayText(t *testing.T) {
	for want, record := range map[string]shellctx.Record{
		"$ ls\na\nb\n[exit 0]":                              {Command: "ls", Output: "a\nb\n\n"},
		"$ grep x f\n[exit 1]":                              {Command: "grep x f", ExitCode: 1, Error: "exit status 1"},
		"$ yes\ny\n[exit 130, output truncated]\ncancelled": {Command: "yes", Output: "y", ExitCode: 130, OutputTruncated: true, Error: "cancelled"},
	} {
		if got := shellctx.DisplayText(record); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
