package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// The environment of an S3 target, with the usual names.
const (
	envKeyID       = "AWS_ACCESS_KEY_ID"
	envSecret      = "AWS_SECRET_ACCESS_KEY" // #nosec G101 -- a variable's name
	envSession     = "AWS_SESSION_TOKEN"     // #nosec G101 -- a variable's name
	envRegion      = "AWS_REGION"
	envRegionOld   = "AWS_DEFAULT_REGION"
	envEndpoint    = "AWS_ENDPOINT_URL_S3"
	envEndpointAll = "AWS_ENDPOINT_URL"
)

const (
	defaultEndpoint = "https://s3.amazonaws.com"
	defaultRegion   = "us-east-1"
)

// s3Target is a bucket, or a prefix of one.
type s3Target struct {
	client         *minio.Client
	bucket, prefix string
}

func openS3(u *url.URL, getenv func(string) string) (Target, error) {
	if u.User != nil {
		return nil,
			fmt.Errorf("backup target: credentials in the URL cannot be kept secret; set %s and %s", envKeyID,
				envSecret)
	}
	if getenv(envKeyID) == "" || getenv(envSecret) == "" {
		return nil, fmt.Errorf("backup target s3://%s: no credentials: set %s and %s", u.Host, envKeyID, envSecret)
	}
	e, err := url.Parse(firstNonEmpty(getenv(envEndpoint), getenv(envEndpointAll), defaultEndpoint))
	if err != nil || e.Host == "" || e.Scheme != "https" && e.Scheme != "http" {
		variable := envEndpoint // never show its value: it may hold a password
		if getenv(envEndpoint) == "" {
			variable = envEndpointAll
		}
		return nil, fmt.Errorf("backup target s3://%s: %s is not a URL", u.Host, variable)
	}
	client, err := minio.New(e.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(getenv(envKeyID), getenv(envSecret), getenv(envSession)),
		Secure: e.Scheme == "https", Region: firstNonEmpty(getenv(envRegion), getenv(envRegionOld), defaultRegion),
	})
	if err != nil {
		return nil, fmt.Errorf("backup target s3://%s: %w", u.Host, err)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &s3Target{client: client, bucket: u.Host, prefix: prefix}, nil
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// String implements Target.
func (t *s3Target) String() string {
	return strings.TrimSuffix("s3://"+t.bucket+"/"+t.prefix, "/")
}

// Put implements Target. The server checks the digests sent with the content.
func (t *s3Target) Put(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	_, err := t.client.PutObject(ctx, t.bucket, t.prefix+name, io.NewSectionReader(content, 0, size), size,
		minio.PutObjectOptions{ContentType: "application/octet-stream", SendContentMd5: true})
	return t.wrapError("store "+name, err)
}

// Get implements Target.
func (t *s3Target) Get(ctx context.Context, name string, w io.Writer) error {
	if err := checkName(name); err != nil {
		return err
	}
	object, err := t.client.GetObject(ctx, t.bucket, t.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return t.wrapError("read "+name, err)
	}
	_, err = io.Copy(w, object)
	return t.wrapError("read "+name, errors.Join(err, object.Close()))
}

// List implements Target.
func (t *s3Target) List(ctx context.Context) ([]string, error) {
	ctx, stop := context.WithCancel(ctx) // ends the listing when we stop reading
	defer stop()
	var names []string
	for object := range t.client.ListObjects(ctx, t.bucket, minio.ListObjectsOptions{Prefix: t.prefix}) {
		if object.Err != nil {
			return nil, t.wrapError("list the backups", object.Err)
		}
		if name := strings.TrimPrefix(object.Key, t.prefix); name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names, nil
}

// Delete implements Target.
func (t *s3Target) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return t.wrapError("remove "+name, t.client.RemoveObject(ctx, t.bucket, t.prefix+name, minio.RemoveObjectOptions{}))
}

func (t *s3Target) wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return &StoreError{Target: t.String(), What: what, Err: err}
}
