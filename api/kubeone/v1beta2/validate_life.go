package v1beta2

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
)

// The values of DrainConfig.OnTimeout: what happens to a node with remaining pods.
const (
	DrainStop  = "stop"
	DrainSkip  = "skip"
	DrainForce = "force"
)

var share = regexp.MustCompile(`^([1-9][0-9]{0,4}|[1-9][0-9]?%|100%)$`)

func (f *findings) upgrade(u UpgradeConfig) {
	if !share.MatchString(u.MaxUnavailable) {
		f.errorf("upgrade.maxUnavailable", "use a number of workers such as 2, or a percentage such as 25%",
			"%q is neither a positive number nor a percentage up to 100%%", u.MaxUnavailable)
	}
	if u.MaxParallel < 0 {
		f.errorf("upgrade.maxParallel", "0 means as many as maxUnavailable allows", "%d is less than 0", u.MaxParallel)
	}
	f.every("upgrade.drain.timeout", u.Drain.Timeout, time.Second, time.Second)
	if actions := []string{DrainStop, DrainSkip, DrainForce}; !slices.Contains(actions, u.Drain.OnTimeout) {
		f.errorf("upgrade.drain.onTimeout", "use one of: "+strings.Join(actions, ", "), "%q is not supported",
			u.Drain.OnTimeout)
	}
	if u.Drain.GracePeriod != "" {
		f.every("upgrade.drain.gracePeriod", u.Drain.GracePeriod, 0, time.Second)
	}
}

// hardening accepts "", which means unset.
func (f *findings) hardening(value string) {
	if values := []string{HardeningBaseline, HardeningNone}; value != "" && !slices.Contains(values, value) {
		f.errorf("hardening", "use one of: "+strings.Join(values, ", "), "%q is not supported", value)
	}
}

// firewall accepts "", which is the default. The default is not filled in, so that manifests of existing clusters keep
// their digests.
func (f *findings) firewall(value string) {
	if values := []string{FirewallManage, FirewallDisable, FirewallIgnore}; value != "" &&
		!slices.Contains(values, value) {
		f.errorf("firewall", "use one of: "+strings.Join(values, ", "), "%q is not supported", value)
	}
}

func (f *findings) backup(b BackupConfig) {
	for i, recipient := range b.Recipients {
		f.recipient(Item("backup.recipients", i), recipient, b.Recipients[:i])
	}
	f.target(b)
	if d, err := time.ParseDuration(b.Schedule); err != nil || d != 0 {
		f.every("backup.schedule", b.Schedule, time.Minute, time.Minute)
	}
	if *b.Keep < 1 {
		f.errorf("backup.keep", "to disable snapshots, set schedule: 0", "%d is too low: the minimum is 1", *b.Keep)
	}
}

// every checks that a duration is at least the minimum, and a multiple of unit.
func (f *findings) every(path, value string, least, unit time.Duration) {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || d < 0:
		f.errorf(path, "use a Go duration such as 90s, 5m or 6h", "%q is not a valid duration", value)
	case d < least:
		f.errorf(path, "", "%s is too short: the minimum is %s", value, least)
	case d%unit != 0:
		f.errorf(path, "", "%s is not a multiple of %s", value, unit)
	}
}

func (f *findings) recipient(path, recipient string, before []string) {
	switch {
	case strings.HasPrefix(strings.ToUpper(recipient), "AGE-SECRET-KEY-"):
		// Readers of the message must not be able to decrypt backups.
		f.errorf(path, "create a new key, because others may have read this one, and use the public key that "+
			"age-keygen -y prints", "is a private key")
	case !isRecipient(recipient):
		f.errorf(path, "use the key that age-keygen prints: age1 and 58 characters", "%q is not a valid age public key",
			recipient)
	case slices.Contains(before, recipient):
		f.errorf(path, "remove one of them", "is listed twice")
	}
}

// target never repeats the value, which may hold a password.
func (f *findings) target(b BackupConfig) {
	const path = "backup.target"
	if b.Target == "" {
		return
	}
	if len(b.Recipients) == 0 {
		f.errorf(path, "add an age public key",
			"needs backup.recipients, because backups are encrypted")
	}
	scheme, _, isURL := strings.Cut(b.Target, "://")
	if !isURL {
		return
	}
	u, err := url.Parse(b.Target)
	switch {
	case scheme != "ssh" && scheme != "s3" || err != nil || u.Host == "":
		f.errorf(path, "use a directory, ssh://user@host/directory or s3://bucket/prefix",
			"is not a valid backup target")
	case scheme == "s3" && u.User != nil:
		f.errorf(path, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "credentials cannot be kept secret here")
	case u.User != nil && hasPassword(u):
		f.errorf(path, "use an SSH key", "a password cannot be kept secret here")
	case u.RawQuery != "" || u.Fragment != "":
		f.errorf(path, "for a store other than Amazon S3, set AWS_ENDPOINT_URL_S3 and AWS_REGION",
			"contains settings, which belong in the environment")
	case scheme == "ssh" && strings.Trim(u.Path, "/") == "":
		f.errorf(path, "use ssh://user@host/directory", "does not name a directory")
	}
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has
}

// isRecipient reports whether text is the public key of an age X25519 identity. The checksum finds misspelt keys.
// Otherwise a backup that no key can decrypt would be noticed only when it is needed.
func isRecipient(text string) bool {
	_, err := age.ParseX25519Recipient(text)
	return err == nil
}
