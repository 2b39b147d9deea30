package shell

import "testing"

func TestJq(t *testing.T) {
	for _, c := range []struct {
		source, stdout string
		code           int
	}{
		{`echo '{"a":1}' | jq .a`, "1\n", 0},
		{`echo '{"a":[1,2]}' | jq -c .`, "{\"a\":[1,2]}\n", 0},
		{`echo '{"a":[1,2],"b":{}}' | jq .`, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}\n", 0},
		{`echo '"x<y>&"' | jq .`, "\"x<y>&\"\n", 0},
		{`echo '["x","y"]' | jq -r '.[]'`, "x\ny\n", 0},
		{`echo '["x","y"]' | jq -j '.[]'`, "xy", 0},
		{`echo '{"a":"x"}' | jq -rc .a`, "x\n", 0},
		{`echo '9007199254740993' | jq .`, "9007199254740993\n", 0},
		{`jq -n '1+1'`, "2\n", 0},
		{`jq -n --arg x y '$x'`, "\"y\"\n", 0},
		{`jq -n --argjson x '{"a":1}' -c '$x'`, "{\"a\":1}\n", 0},
		{`jq -n -c '$ARGS' --args a b`, "{\"named\":{},\"positional\":[\"a\",\"b\"]}\n", 0},
		{`printf 'a\nb' | jq -R .`, "\"a\"\n\"b\"\n", 0},
		{`printf '1 2 3' | jq -s add`, "6\n", 0},
		{`printf '1 2 3' | jq -n '[inputs]|length'`, "3\n", 0},
		{`printf 'a\nb\n' | jq -Rs .`, "\"a\\nb\\n\"\n", 0},
		{`echo '{"a":1}' >f.json; jq .a f.json`, "1\n", 0},
		{`mkdir d; cd d; echo '5' >f.json; jq . f.json`, "5\n", 0},
		{`export WHO=me; jq -rn env.WHO`, "me\n", 0},
		{`WHO=you jq -rn '$ENV.WHO'`, "you\n", 0},
		{`echo null | jq -e .`, "null\n", 1},
		{`jq -ne empty`, "", 4},
		{`echo '{' | jq .`, "", 2},
		{`jq`, "", 2},
		{`jq -n '@'`, "", 3},
		{`jq -n '1|error'`, "", 5},
		{`jq . /nosuch`, "", 2},
		{`jq -Q .`, "", 2},
		{`echo '"é"' | jq -a .`, "\"\\u00e9\"\n", 0},
		{`jq -n --tab '[1]'`, "[\n\t1\n]\n", 0},
		{`jq -n 'halt'`, "", 0},
		{`echo '{"a":1}' | jq 'nosuch'`, "", 3},
		{`yes '{"a":1}' | jq -c .a | head -2`, "1\n1\n", 0},
	} {
		r := runHere(t, c.source)
		if r.stdout != c.stdout || ExitCode(r.err) != c.code {
			t.Errorf("%s: printed %q, exit code %d (stderr %q), want %q, %d", c.source, r.stdout, ExitCode(r.err), r.stderr, c.stdout, c.code)
		}
	}
}
