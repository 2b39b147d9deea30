package convo

import (
	"reflect"
	"testing"
	"time"
)

func TestParseQuery(t *testing.T) {
	zone := time.FixedZone("test", 2*3600)
	now := time.Date(2026, 11, 30, 20, 15, 0, 0, zone)
	zero, one := 0, 1
	for line, want := range map[string]Query{
		"":                                    {},
		"jwt ttl":                             {Text: "jwt ttl"},
		"cell:api-2 agent:codex jwt":          {Text: "jwt", Cell: "api-2", Agent: "codex"},
		"exit:!=0 make":                       {Text: "make", ExitNot: &zero},
		"exit:!0":                             {ExitNot: &zero},
		"make exit:1 sort:rank":               {Text: "make", Exit: &one, Ranked: true},
		"since:2h x":                          {Text: "x", Since: now.Add(-2 * time.Hour)},
		"since:3d":                            {Since: now.AddDate(0, 0, -3)},
		"since:2w":                            {Since: now.AddDate(0, 0, -14)},
		"since:today":                         {Since: time.Date(2026, 11, 30, 0, 0, 0, 0, zone)},
		"since:yesterday":                     {Since: time.Date(2026, 11, 29, 0, 0, 0, 0, zone)},
		"since:2026-11-01":                    {Since: time.Date(2026, 11, 1, 0, 0, 0, 0, zone)},
		`"cell:api two words" http://x:80 a:`: {Text: `"cell:api two words" http://x:80 a:`},
	} {
		got, err := ParseQuery(line, now)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"exit:x", "exit:!=", "since:soon", "since:-3d", "since:3x", "sort:best"} {
		if q, err := ParseQuery(line, now); err == nil {
			t.Errorf("%q was read as %+v", line, q)
		}
	}
}

// The words that are left when the filters are taken out hold no filter, so
// that a line which is read again means the same.
func FuzzParseQuery(f *testing.F) {
	for _, line := range []string{"jwt cell:api", `"a cell:b`, "exit:!=0 since:3d", "since:9999999999999w", "exit:99999999999999999999", "\x00\xff:\u2028", `a"b c"d:e`} {
		f.Add(line)
	}
	now := time.Date(2026, 11, 30, 20, 15, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, line string) {
		q, err := ParseQuery(line, now)
		if err != nil {
			return
		}
		again, err := ParseQuery(q.Text, now)
		if err != nil || !reflect.DeepEqual(again, Query{Text: q.Text}) {
			t.Fatalf("%q leaves %q, which is %+v, %v", line, q.Text, again, err)
		}
	})
}
