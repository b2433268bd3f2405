package fake

import (
	"testing"

	"kubeone/internal/machines/provider"
)

// What the controllers do for a provider that can do nothing but create, find and delete, they do for this one.
func TestItHasNothingOptional(t *testing.T) {
	t.Parallel()
	var p provider.Provider = New(nil, Options{})
	_, updates := p.(provider.Updater)
	_, validates := p.(provider.Validator)
	_, defaults := p.(provider.Defaulter)
	if updates || validates || defaults {
		t.Errorf("it updates: %t, validates: %t, defaults: %t", updates, validates, defaults)
	}
}
