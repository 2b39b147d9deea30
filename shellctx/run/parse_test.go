package run

import "testing"

func TestParseLine(t *testing.T) {
	for in, want := range map[string]Line{
		"!ls":            {true, Context, "ls"},
		"! ls":           {true, Context, "ls"},
		"\n  !ls\n":      {true, Context, "ls"},
		"!!cat .env":     {true, Private, "cat .env"},
		"!! cat .env":    {true, Private, "cat .env"},
		"!?npm test":     {true, Ask, "npm test"},
		"!":              {true, Context, ""},
		"!!":             {true, Private, ""},
		"!?":             {true, Ask, ""},
		"!exit":          {true, Context, "exit"},
		"!! ! false":     {true, Private, "! false"},
		`\!important`:    {false, "", "!important"},
		`  \!important`:  {false, "", "!important"},
		"hello ! world":  {false, "", "hello ! world"},
		"  hello":        {false, "", "  hello"},
		"":               {false, "", ""},
		"!echo a\\ ":     {true, Context, "echo a\\ "},
		"!cat <<E\nx\nE": {true, Context, "cat <<E\nx\nE"},
		"/help":          {false, "", "/help"},
	} {
		if got := ParseLine(in); got != want {
			t.Errorf("ParseLine(%q) = %+v, want %+v", in, got, want)
		}
	}
}
