package wire

import "flexd/internal/flex"

// BalanceInfoResponse answers GET /rewards/{site_id}/info.
type BalanceInfoResponse struct {
	// Earnings less withdrawals.
	CurrentBalancePence             flex.Pence `json:"current_balance_pence"`
	TotalEarningsPence              flex.Pence `json:"total_earnings_pence"`
	MinimumWithdrawalThresholdPence flex.Pence `json:"minimum_withdrawal_threshold_pence"`
	// Counted from the first reward.
	WithdrawalMinWaitDays int  `json:"withdrawal_min_wait_days"`
	CanWithdraw           bool `json:"can_withdraw"`
}

// BalanceURLQuery holds the parameters of GET /rewards/{site_id}/url/balance. Without
// EnforceTwoFactorAuth the organisation's setting counts.
type BalanceURLQuery struct {
	// Where the page leads back to. Nothing is added to it.
	//
	//openapi:merge {"example": "https://app.example.com/rewards"}
	RedirectURI string `json:"redirect_uri" wire:"required,nonempty,text=2083"`
	// Asks for the code that is sent by e-mail before a bank account can be linked or money
	// withdrawn, even if the organisation asks for none. It can only be raised: false changes
	// nothing.
	EnforceTwoFactorAuth *bool `json:"enforce_two_factor_auth"`
	// Leave the list of transactions out.
	//
	//openapi:merge {"default": false}
	HideTransactions bool `json:"hide_transactions"`
	// Begin with linking a bank account if there is none.
	//
	//openapi:merge {"default": false}
	AutoRedirectToSetup bool `json:"auto_redirect_to_setup"`
}

// BalanceWithdrawalURLResponse answers it.
type BalanceWithdrawalURLResponse struct {
	// flexd's own page for the end user.
	BalanceWithdrawalURL string `json:"balance_withdrawal_url"`
	URLExpiryTimestamp   Time   `json:"url_expiry_timestamp"`
}

// TransactionsQuery holds the parameters of GET /rewards/{site_id}/transactions, which are
// ours.
type TransactionsQuery struct {
	// Most transactions to list.
	Limit int `json:"limit" wire:"min=1,max=1000,default=100"`
	// Items to pass over.
	Offset int `json:"offset" wire:"min=0,default=0"`
}

// TransactionDataResponse answers it, newest first.
type TransactionDataResponse struct {
	SiteID       flex.SiteID                `json:"site_id"`
	Transactions []TransactionDatumResponse `json:"transactions"`
	// Of all the site's transactions.
	//
	//openapi:optional
	TotalCount int `json:"total_count"`
	//openapi:optional
	//openapi:merge {"default": false}
	IsBelowWithdrawalMinimum    bool `json:"is_below_withdrawal_minimum"`
	DaysUntilMinimumWaitTimeMet *int `json:"days_until_minimum_wait_time_met,omitzero"`
}

// TransactionDatumResponse is one transaction; withdrawals are negative.
type TransactionDatumResponse struct {
	TransactionID   flex.TransactionID `json:"transaction_id"`
	TransactionType string             `json:"transaction_type,omitzero" wire:"enum=TransactionType"`
	// Withdrawals are negative.
	CreditPence    flex.Pence `json:"credit_pence"`
	StartTime      Time       `json:"start_time,omitzero"`
	EndTime        Time       `json:"end_time,omitzero"`
	SettlementDate *Day       `json:"settlement_date,omitzero"`
	// Three decimals; more import than the baseline is positive. A top-up or a correction names
	// what changed, so that the sum is the newest result.
	FlexKWh       *float64 `json:"flex_kwh,omitzero"`
	PaymentStatus string   `json:"payment_status,omitzero" wire:"enum=PaymentStatus"`
	// What the session charged, as far as it was known then; a top-up or a correction names what
	// changed, so that the sum is what it charged.
	CreditableKWh         *float64            `json:"creditable_kwh,omitzero"`
	CreditRatePencePerKWh *float64            `json:"credit_rate_pence_per_kwh,omitzero"`
	PlugSessionID         flex.SessionID      `json:"plug_session_id,omitzero"`
	Vehicle               *TransactionVehicle `json:"vehicle,omitzero"`
}

// TransactionVehicle names the car that a transaction is for.
type TransactionVehicle struct {
	ModelName string `json:"model_name"`
}
