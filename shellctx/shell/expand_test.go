package shell

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"mvdan.cc/sh/v3/interp"
)

var expandEnv = []string{"A=1", "EMPTY=", "HOME=/home/u", "PATH=/usr/bin:/bin", "SPACES=a  b", "NL=a\nb"}

func TestExpandValue(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		"don't":                    "don't",
		`say "hi"`:                 `say "hi"`,
		"'$A'":                     "'1'",
		`"$A"`:                     `"1"`,
		"$A":                       "1",
		"${A}":                     "1",
		"x${A}y$A":                 "x1y1",
		"${A:-d} ${U:-d}":          "1 d",
		"${A:+alt}":                "alt",
		"${U:-'a b'}":              "a b",
		`${U:-"a b"}`:              "a b",
		"${EMPTY:-d}":              "d",
		"${EMPTY-d}":               "",
		"$U":                       "",
		"[$U]":                     "[]",
		`\$A`:                      "$A",
		`\\`:                       `\`,
		"\\`x\\`":                  "`x`",
		`C:\path\to`:               `C:\path\to`,
		"$(echo hi)":               "hi",
		"$(echo 'a  b' \"$A\")":    "a  b 1",
		"`echo hi`":                "hi",
		"$(printf 'x\\n\\n\\n')":   "x",
		"$(printf '  x \\n y\\n')": "  x \n y",
		"$(echo $(echo deep))":     "deep",
		"$SPACES":                  "a  b",
		"$NL":                      "a\nb",
		"*":                        "*",
		"~/x":                      "~/x",
		"{a,b}":                    "{a,b}",
		"$((1+2))":                 "3",
		"a # b":                    "a # b",
		"a\n$A\nb":                 "a\n1\nb",
		"${HOME}/x":                "/home/u/x",
		"${#SPACES}":               "4",
		"${HOME##*/}":              "u",
		"100%":                     "100%",
		"a & b | c > d":            "a & b | c > d",
		"$":                        "$",
		"$5":                       "",
		"cost: 5$":                 "cost: 5$",
		"$(true)":                  "",
		"$(cat)":                   "",
		"${U:=x}$U":                "xx",
	} {
		got, err := ExpandValue(t.Context(), in, expandEnv)
		if err != nil || got != want {
			t.Errorf("ExpandValue(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestExpandValueErrors(t *testing.T) {
	for in, parts := range map[string][]string{
		"${U:?is not set}":                        {"is not set"},
		"$(exit 3)":                               {"exit status 3"},
		"$(echo broken >&2; exit 4)":              {"exit status 4", "broken"},
		"$(printf 'a\\033[31mb\\007' >&2; false)": {"exit status 1", "a?[31mb?"},
		"$(nosuch-command-x)":                     {"exit status 127", "command not found"},
		"$(":                                      {"could not parse value"},
		"${":                                      {"could not parse value"},
		"$(if)":                                   {"could not parse value"},
	} {
		got, err := ExpandValue(t.Context(), in, expandEnv)
		if err == nil {
			t.Errorf("ExpandValue(%q) = %q", in, got)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("ExpandValue(%q): %q lacks %q", in, err, part)
			}
		}
	}
	_, err := ExpandValue(t.Context(), "$(head -c 100000 /dev/zero | tr '\\0' x >&2; exit 7)", expandEnv)
	if ExitCode(err) != 7 || len(err.Error()) > 600 {
		t.Errorf("%d bytes, exit code %d", len(err.Error()), ExitCode(err))
	}
	if status, ok := errors.AsType[interp.ExitStatus](err); !ok || status != 7 {
		t.Errorf("wraps %v", status)
	}
}

func TestExpandValueEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := ExpandValue(ctx, "$(sleep 100)", expandEnv)
	if !IsInterrupt(err) || time.Since(begin) > promise {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// TestNoUnset is not parallel: it sets the one switch of this package.
func TestNoUnset(t *testing.T) {
	NoUnset.Store(true)
	defer NoUnset.Store(false)
	for _, in := range []string{"$U", "$(echo $U)"} {
		if got, err := ExpandValue(t.Context(), in, expandEnv); err == nil {
			t.Errorf("ExpandValue(%q) = %q", in, got)
		}
	}
	if got, err := ExpandValue(t.Context(), "${U:-d}$A", expandEnv); err != nil || got != "d1" {
		t.Errorf("%q %v", got, err)
	}
}

func FuzzExpandValue(f *testing.F) {
	for _, s := range []string{
		"", "plain", "don't", "$A", "${A:-x}", "${A:?x}", "$(", "`", "\\", "$(echo hi)", "${A//1/2}", "$((1+2))", "'$A'",
		"${!A}", "$[1]", "${A:1:2}", "<(x)", "\x00$A", "$\xff", "${A@Q}", "<<E", "$'x'", "${A^^}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.Contains(value, "$(") || strings.Contains(value, "`") || strings.Contains(value, "<(") || strings.Contains(value, ">(") {
			// What is substituted is a command line; a fuzzer must run none.
			value = strings.NewReplacer("$(", "$", "`", "", "<(", "", ">(", "").Replace(value)
			if strings.Contains(value, "$(") {
				return
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		got, err := ExpandValue(ctx, value, []string{"A=1"})
		if err != nil {
			return
		}
		if !strings.ContainsAny(value, "$\\`") && got != value {
			t.Fatalf("%q became %q", value, got)
		}
		// A value survives being carried in a variable.
		if !strings.Contains(value, "\x00") {
			again, err := ExpandValue(ctx, "$V", []string{"V=" + value})
			if err != nil || again != value {
				t.Fatalf("%q came back as %q, %v", value, again, err)
			}
		}
	})
}

func TestErrorsQuoteOnlyWhatPrints(t *testing.T) {
	p := &prefix{limit: 16}
	_, _ = p.Write([]byte("a\x1b[31m\xff\u202e\nb and much more"))
	for _, r := range p.printable() {
		if !unicode.IsPrint(r) {
			t.Errorf("%q", p.printable())
		}
	}
}
