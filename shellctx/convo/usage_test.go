package convo

import (
	"context"
	"testing"

	"cellmux/shellctx/protocol"
)

// spending answers with a usage.
type spending struct{ usage map[string]any }

func (s spending) Run(_ context.Context, _ Target, _ string, _ func(string)) (Turn, error) {
	return Turn{Text: "done", Usage: s.usage}, nil
}

func TestUsageOfATurnIsKeptWithItsAnswerAndSaid(t *testing.T) {
	for _, c := range []struct {
		usage map[string]any
		want  string
	}{
		{map[string]any{"input_tokens": 1234.0, "output_tokens": 56.0, "cache_read_input_tokens": 9.0, "cost_usd": 0.01234}, "1234 in, 56 out, $0.0123"},
		{map[string]any{"input": 22.0, "output": 14.0, "total": 36.0, "cost_usd": 0.0}, "22 in, 14 out"},
		{map[string]any{"input_tokens": 11.0, "output_tokens": 7.0, "cumulative": true}, "11 in, 7 out so far"},
		{map[string]any{"total_tokens": 3.0}, ""},
		{nil, ""},
	} {
		s := newService(t, func(o *Options) { o.Headless = spending{c.usage} })
		submit(t, s, text("m1", "hi"))
		deliver(t, s)
		page, err := s.Page(t.Context(), api.Session, 0, 10)
		if err != nil || len(page) != 2 || page[1].Message.Role != protocol.Assistant {
			t.Fatalf("%+v, %v", page, err)
		}
		if got := UsageText(page[1].Message); got != c.want {
			t.Errorf("%v is %q, want %q", c.usage, got, c.want)
		}
		if got := UsageText(page[0].Message); got != "" {
			t.Errorf("the question used %q", got)
		}
	}
}
