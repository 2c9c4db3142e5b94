package canary_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// The values are told from each other and from everything else, and give away
// nothing by their shape that the real ones would not.
const (
	thePrompt      = "a heron lands on Quimby pier 7719"
	theMetadata    = "Metadata Oswin Thackeray 4471"
	theResult      = "transcript Vesper Holloway 8823"
	theLinkPath    = "tmp-9f31c7e2ab54-linkpath"
	theLinkQuery   = "lq7Zt0w4vXeSigQuery"
	theHeldText    = "held Bittern opinion 5530"
	theHeldPath    = "held-51cc0e72-linkpath"
	theHeldQuery   = "hq8Tr3HeldLinkSig"
	theMessage     = "marigold subject 5561 not permitted"
	theMessagePath = "msg-77ab01ce-linkpath"
	theMessageSig  = "mq8Ru2LinkMessageSig"
	theProviderKey = "Pk4f9Qm2Zr8Kx1Vw7Tn5ProviderKey"
	theAdminSecret = "Adm1nC4naryKeyZx81Qw93Er75Ty60Ui"
	theAdminKey    = "pawl_sk_" + theAdminSecret
	theKey         = "idem-Corvina-20931-key"
	theForged      = "forged-Lapwing-40193-body"
	theGateKey     = "gate-48151623"
	theRefused     = "refused-Nightjar-77120-value"
	theName        = "zz_refused_name_5512"
	thePanic       = "panicked-Bittern-61177-value"
	theOwn         = "published Wigeon invoice 60418"
	theReceived    = "received Gadwall order 91370"
	theConfigured  = "configured-Dunlin-30774-value"

	// Secrets are Base64 of 24 bytes, as schemes want them.
	theProviderSecretText = "ProviderHookSecretCanary01234567"
	theEndpointSecretText = "EndpointSecretCanaryAbcdefgh7890"
	theProviderSecret     = "whsec_" + theProviderSecretText
	theEndpointSecret     = "whsec_" + theEndpointSecretText
	theSourceSecretText   = "ShopSourceSecretCanary0123456789"
	theSourceSecret       = "whsec_" + theSourceSecretText
	theBareQuery          = "bq4Kx9SchemelessLinkSig"
	thePath               = "shared-04be77d1-linkpath"
	theReceiverWords      = "no such column Smew"
	theReceiverPassword   = "rp8Gadfly2Zk"

	theEndpointPath  = "ep-3c81d0f2-endpointpath"
	theEndpointQuery = "eq5Yy1EndpointCredential"
	theCallbackPath  = "cb-b7720e19-callbackpath"
	theCallbackQuery = "cq3Vv9CallbackCredential"
)

// fixed are the values that are known beforehand.
var fixed = map[class][]string{
	prompt: {thePrompt}, metadata: {theMetadata}, result: {theResult}, resultLink: {theLinkPath, theLinkQuery},
	heldResult: {theHeldText, theHeldPath, theHeldQuery},
	message:    {theMessage}, messageLink: {theMessagePath, theMessageSig}, providerKey: {theProviderKey},
	providerSecret: {theProviderSecretText}, adminKey: {theAdminSecret}, endpointSecret: {theEndpointSecretText},
	endpointURL: {theEndpointPath, theEndpointQuery}, callbackURL: {theCallbackPath, theCallbackQuery},
	idempotency: {theKey}, forged: {theForged}, refused: {theRefused}, name: {theName}, panicked: {thePanic},
	configured: {theConfigured}, ownData: {theOwn}, received: {theReceived}, sourceSecret: {theSourceSecretText},
	bareLink: {theBareQuery}, pathLink: {thePath}, receiverWords: {theReceiverWords}, receiverSecret: {theReceiverPassword}, gateKey: {theGateKey},
}

const (
	theLink        = "https://files.provider.example/" + theLinkPath + ".mp4?X-Signature=" + theLinkQuery
	theMessageLink = "https://files.provider.example/" + theMessagePath + ".log?sig=" + theMessageSig
	// theProviderText is what a careless provider says of a failure.
	theProviderText = theMessage + ", see " + theMessageLink + " for key " + theProviderKey
)

// theRest is what a more careless provider adds: what it was sent, encoded by hand,
// and links without a scheme and without a query.
func theRest(callback string) string {
	key, secret := []byte("me:"+theProviderKey), []byte(theProviderSecretText)
	return " Basic " + base64.StdEncoding.EncodeToString(key) + " " + hex.EncodeToString(key) + " " + base64.RawURLEncoding.EncodeToString(secret) +
		" " + theProviderSecret + " " + hex.EncodeToString(secret) + " " + callback[strings.LastIndex(callback, "/")+1:] +
		" //files.provider.example/a?sig=" + theBareQuery + " https://files.provider.example/" + thePath
}

// theOutcome is the result of a job.
var theOutcome = `{"text":"` + theResult + `","url":"` + theLink + `"}`

// endpointAt and callbackAt are addresses at a receiver, in one of its moods.
func endpointAt(base, mood string) string {
	return strings.TrimRight(base, "/") + "/" + mood + "/" + theEndpointPath + "?cred=" + theEndpointQuery
}

func callbackAt(base string) string {
	return strings.TrimRight(base, "/") + "/ok/" + theCallbackPath + "?cred=" + theCallbackQuery
}
