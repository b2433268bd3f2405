package hostile

import (
	"io"
	"net"
	"strings"
	"time"

	"kubeone/internal/testutil/sshtest"
)

// endless is larger than any limit.
const endless = 1 << 30

// framingAttempts returns attempts with answers that are framed wrongly.
func framingAttempts() []attempt {
	whole := func(g *trial) string { return frameAnswer(g.honestAnswer()) }
	shown := func(name string, text func(g *trial) string) attempt {
		return attempt{name: name, as: everybody, answers: printText(text)}
	}
	floods := func(name, piece string) attempt {
		return attempt{name: name, as: asWorker, answers: func(_ *trial, s *sshtest.Session) int {
			_, _ = io.WriteString(s.Stdout, "kubeone-probe\t1\n")
			pourBytes(s.Stdout, strings.Repeat(piece, 32_000/len(piece)), endless)
			return 0
		}}
	}
	return []attempt{
		floods("one line of 1 GiB", "x"),
		floods("1 GiB of short lines", "x\ty\n"),
		floods("1 GiB of ends of lines", "\n"),
		floods("1 GiB of NUL", "\x00"),
		floods("1 GiB of certificates", "pem\t-----BEGIN CERTIFICATE-----\n"),
		{name: "1 GiB on standard error, and then an honest answer", as: asWorker,
			answers: func(g *trial, s *sshtest.Session) int {
				pourBytes(s.Stderr, strings.Repeat("error ", 5_000), endless)
				_, _ = io.WriteString(s.Stdout, whole(g))
				return 0
			}},
		{name: "a greeting of 1 GiB before the answer", as: asWorker, answers: func(g *trial, s *sshtest.Session) int {
			pourBytes(s.Stdout, strings.Repeat("Welcome! ", 3_000), endless)
			_, _ = io.WriteString(s.Stdout, whole(g))
			return 0
		}},
		shown("nothing", func(*trial) string { return "" }),
		shown("a login shell's prompt", func(*trial) string { return "\x1b]0;owned\a[root@w-2 ~]# " }),
		shown("half an answer", func(g *trial) string { return whole(g)[:700] }),
		shown("no end of its last line", func(g *trial) string { return strings.TrimSuffix(whole(g), "\n") }),
		shown("an answer of a later format", func(*trial) string { return "kubeone-probe\t2\nend\t1\n" }),
		shown("a format with escapes", func(*trial) string { return "kubeone-probe\t" + escape + "\nend\t1\n" }),
		shown("a block without an end", func(g *trial) string {
			return "kubeone-probe\t1\nblock\tmarker\n" + whole(g)
		}),
		shown("NUL and invalid UTF-8 between all lines", func(g *trial) string {
			return strings.ReplaceAll(whole(g), "\n", "\x00\xff\xfe\n")
		}),
		shown("ends of lines of every sort", func(g *trial) string {
			return strings.NewReplacer("hostname", "\r\r\nhostname\tcp-1\rhostname", "cpus", "\u2028cpus").
				Replace(whole(g))
		}),
		shown("two answers, the second a control-plane host's", func(g *trial) string {
			return whole(g) + frameAnswer(g.cluster.honestAnswer(clusterMachines()[0]))
		}),
		shown("its answer, and then 1 MB that nobody asked for", func(g *trial) string {
			return whole(g) + strings.Repeat("secret\tx\n", 100_000)
		}),
		{name: "an exit status after an honest answer", as: everybody, answers: func(g *trial, s *sshtest.Session) int {
			_, _ = io.WriteString(s.Stdout, whole(g))
			_, _ = io.WriteString(s.Stderr, escape+" failed\n"+escape)
			return 1
		}},
		{name: "an exit status above all, with words of our own program", as: everybody,
			answers: func(_ *trial, s *sshtest.Session) int {
				_, _ = io.WriteString(s.Stderr, escape+"\nkubeone: no sudo\n")
				return 0x7fffffff
			}},
		{name: "the exit status of a missing sudo, with escapes", as: everybody,
			answers: func(_ *trial, s *sshtest.Session) int {
				_, _ = io.WriteString(s.Stderr, "sudo: "+escape+"\nkubeone: no sudo\n")
				return 213
			}},
		{name: "a connection that ends in the middle", as: everybody, answers: func(g *trial, s *sshtest.Session) int {
			_, _ = io.WriteString(s.Stdout, whole(g)[:300])
			s.Drop()
			return 0
		}},
	}
}

// connectionAttempts returns attempts below the commands: slow connections, and servers that do not speak SSH.
func connectionAttempts() []attempt {
	stays := func(s *sshtest.Session) { <-s.Context().Done() }
	return []attempt{
		{name: "says nothing", as: everybody, slow: true, answers: func(_ *trial, s *sshtest.Session) int {
			stays(s)
			return 0
		}},
		{name: "answers, and does not end", as: everybody, slow: true, answers: func(g *trial, s *sshtest.Session) int {
			_, _ = io.WriteString(s.Stdout, frameAnswer(g.honestAnswer()))
			stays(s)
			return 0
		}},
		{name: "a byte at a time, without an end", as: everybody, slow: true, answers: sendSlowly},
		{name: "no SSH, but silence", as: asWorker, slow: true, raw: func(c net.Conn) {
			_, _ = io.Copy(io.Discard, c)
		}},
		{name: "no SSH, but 1 GiB", as: asWorker, raw: func(c net.Conn) {
			pourBytes(c, strings.Repeat("x", 32_000), endless)
		}},
		{name: "no SSH, but lines without end before its version", as: asWorker, raw: func(c net.Conn) {
			pourBytes(c, strings.Repeat(escape+"\r\n", 500), endless)
		}},
		{name: "the version of SSH, and then 1 GiB of nonsense", as: asWorker, raw: func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
			pourBytes(c, strings.Repeat("\xff\xff\xff\xff", 8_000), endless)
		}},
		{name: "an end of the connection with words of its own", as: everybody, raw: func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
			said := escape + "not today"
			packet := "\x01\x00\x00\x00\x02\x00\x00\x00" + string(rune(len(said))) + said + "\x00\x00\x00\x00"
			for (len(packet)+6)%8 != 0 {
				packet += "\x00"
			}
			_, _ = io.WriteString(c, "\x00\x00\x00"+string(rune(len(packet)+2))+"\x04"+packet)
			_, _ = io.Copy(io.Discard, c)
		}},
		{name: "connections that end at once", as: everybody, raw: func(c net.Conn) { _ = c.Close() }},
	}
}

// sendSlowly sends a few bytes a second.
func sendSlowly(_ *trial, s *sshtest.Session) int {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, b := range []byte("kubeone-probe\t1\n" + strings.Repeat("hostname\tcp-1\n", 10_000)) {
		select {
		case <-s.Context().Done():
			return 0
		case <-tick.C:
		}
		if _, err := s.Stdout.Write([]byte{b}); err != nil {
			return 0
		}
	}
	return 0
}
