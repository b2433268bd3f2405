// Package authoritytest has a CA for tests. Its key is not stored anywhere.
package authoritytest

// CA is the certificate of a CA in PEM, for which authority.New creates successors. It expires in 2036.
const CA = `-----BEGIN CERTIFICATE-----
MIIBUzCB+aADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMTBmFueS1jYTAe
Fw0yNjAxMDEwMDAwMDBaFw0zNjAxMDEwMDAwMDBaMBExDzANBgNVBAMTBmFueS1j
YTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEFCkMgJenmjTat/cBDwd3eFL0iK
e/s7quSuo4UoW7fchrCybLYyQjhjPpXpwIG0tc35Ih1fu+JWbb++NXPpZdijQjBA
MA4GA1UdDwEB/wQEAwICBDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBSkW1rh
2zmHifKoLhJNBrqQPdVaLTAKBggqhkjOPQQDAgNJADBGAiEA0lqU1rcYyUYoLURM
JbA4DONZWENIyVVmqC3/vnu9KQ8CIQCZ7YVcxXghLJjvD8H0Evkcf+HKdpRI9UMl
ebEQPxgXJQ==
-----END CERTIFICATE-----
`
