#!/bin/sh
# Names that were replaced do not come back: docs/glossary.md has the old ones beside the new ones, and is the only place
# for both, but for the changelog. What is kept on hosts keeps its name (/var/lib/kubeone/turn, guard.sh), and so do fields of JSON.
set -eu
cd "$(dirname "$0")/.."

# Words that an operator or a reader would have to ask about, in any text or name.
words='ring|rings|strays|strayed|remedy|remedies|revived|mend|mends|teller|tellers|chronicle|bury|buried'
words="$words|rewritable|faces|Surroundings|openAgain|LeftClosed|Asides|Rewrites|SetAside|LookReset|LookRecover|Perhaps"
# Phrases: an upgrade of a host was once called its turn; etcd data was once set aside.
phrases="(its|host's|hosts'|a) turn (has|had|begins|ends|goes|fails|was)|will be waited for|and yet the cluster"

status=0
git grep -nwE "$words" -- . ':!docs/glossary.md' ':!CHANGELOG.md' ':!hack/words.sh' ':!go.sum' ':!internal/script/sh/files' \
	':!internal/script/testdata' ':!internal/manifest/testdata' ':!internal/host/sshtest' && status=1
git grep -nE "$phrases" -- . ':!docs/glossary.md' ':!hack/words.sh' && status=1
[ "$status" = 0 ] || echo "use the names of docs/glossary.md" >&2
exit "$status"
