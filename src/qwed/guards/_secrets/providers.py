"""Token patterns that the rules from gitleaks lack, or have with one length only.

Each row is a kind, the required literals, and a pattern whose group 1, or whole match, is the secret.
"""

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_START = "(?<![A-Za-z0-9])"
_END = "(?![A-Za-z0-9])"

_VENDOR_TEXT = """
AVNS_ essu_ essa_ api_live. api_test. st. xaat- xapt- csk- ddp_ depot_ e2b_ fw_ fc- jina_ llx- mlsn. napi_
pdl_live_apikey_ pdl_sdbx_apikey_ polar_oat_ polar_pat_ ramp_sec_ retool_ rpa_ snyk_uat. secret-live- secret-test-
tvly- tgp_v1_ ATTA tr_prod_ tr_dev_ unkey_ vtwn_ wandb_v1_ xau_ zpka_ phx_ phs_ aio_ signkey-prod-
signkey-test- bb_live_ cal_live_ lsk_ pck_ lin_wh_ bkt_ ubiops_ infisical_ vck_ ctx7sk- key_live_
key_test_
"""
VENDOR_PREFIXES = tuple(_VENDOR_TEXT.split())
"""Prefixes of tokens whose length their vendors do not state; what follows must be random."""

PROVIDERS: tuple[tuple[str, str, str], ...] = (
    ("qwed_token", "qwed_", r"qwed_(?:live|agent)_[A-Za-z0-9_-]{20,255}"),
    (
        "vendor_key",
        " ".join(VENDOR_PREFIXES),
        _START
        + "(?:"
        + "|".join(prefix.replace(".", r"\.") for prefix in VENDOR_PREFIXES)
        + r")[A-Za-z0-9_.-]{20,200}",
    ),
    (
        "vendor_key",
        "sk_ sk- secret_ pat_ apikey_ apikey- token_",
        _START
        + r"(?:sk|secret|pat|apikey|token)[_-](?:[a-z]{2,8}[_-]){0,2}(?:"
        + _UUID
        + "|[A-Za-z0-9]{24,200})"
        + _END,
    ),
    ("vendor_key", "sk", _START + "sk[A-Za-z0-9]{120,200}" + _END),
    ("vendor_key", "BSA", _START + "BSA[A-Za-z0-9_-]{24,28}" + _END),
    ("vendor_key", "pa-", _START + "pa-[A-Za-z0-9_-]{40,50}" + _END),
    ("facebook_token", "IGQV IGAA", _START + "IG(?:QV|AA)[A-Za-z0-9_-]{80,300}"),
    ("google_secret", "GOOG1", _START + "GOOG1[A-Z0-9]{40,60}" + _END),
    (
        "google_secret",
        "GOOG1",
        r"GOOG1[A-Z0-9]{40,60}[\"']?[\s,;:|/]{1,8}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    (
        "vendor_key",
        "infura.io/ alchemy.com/ loggly.com/ hooks.zapier.com/ maker.ifttt.com/ api.telegram.org/bot",
        r"(?:infura\.io/v3|alchemy\.com/v2|loggly\.com/inputs|hooks\.zapier\.com/hooks/catch/\d{1,12}"
        r"|maker\.ifttt\.com/trigger/\w{1,64}/with/key|api\.telegram\.org/bot\d{6,12}:)/?([A-Za-z0-9_-]{7,64})",
    ),
    # Hashes of passwords that can be cracked or passed on
    (
        "password_hash",
        "SCRAM-SHA-",
        r"SCRAM-SHA-(?:1|256|512)\$\d{1,7}:[A-Za-z0-9+/=]{8,64}\$[A-Za-z0-9+/=]{20,100}:[A-Za-z0-9+/=]{20,100}",
    ),
    ("password_hash", "$krb5", r"\$krb5(?:tgs|asrep|pa)\$\d{1,3}\$[!-~]{40,4000}"),
    (
        "password_hash",
        "::",
        r"(?<![\w:])[\w.$-]{1,64}::[\w.-]{0,64}:[0-9a-fA-F]{16,48}:[0-9a-fA-F]{32,48}:[0-9a-fA-F]{16,2000}",
    ),
    ("launchdarkly_token", "api- sdk-", _START + "(?:api|sdk)-" + _UUID + _END),
    # Clouds
    ("aws_access_key", "AKIA ASIA", r"(?<![A-Z0-9])A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])"),
    (
        "aws_secret_key",
        "AKIA ASIA",
        r"A[KS]IA[A-Z0-9]{16}[\"']?[\s,;:|/]{1,8}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    ("aws_session_token", "IQoJb3JpZ2lu FwoGZXIvYXdz", r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9/+=]{60,2000}"),
    ("aws_bedrock_key", "ABSK", _START + r"ABSK[A-Za-z0-9+/]{100,270}={0,2}"),
    ("google_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,512}"),
    ("google_token", "1//0", r"(?<![\w/])1//0[A-Za-z0-9_-]{35,120}"),
    ("google_token", "4/0A", r"(?<![\w/])4/0A[A-Za-z0-9_-]{50,100}(?![\w-])"),
    ("google_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{24,64}"),
    ("firebase_key", ":APA91b", r"[A-Za-z0-9_-]{8,40}:APA91b[A-Za-z0-9_-]{100,200}"),
    ("azure_key", "AccountKey= SharedAccessKey=", r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,100}={0,2})"),
    ("azure_sas", "sig=", r"[?&;]sig=([A-Za-z0-9%+/]{40,120}={0,2})"),
    ("azure_secret", "Q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])"),
    ("azure_devops_token", "AZDO", _START + r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}" + _END),
    ("alibaba_key", "LTAI", _START + r"LTAI[A-Za-z0-9]{16,20}" + _END),
    ("tencent_key", "AKID", _START + r"AKID[A-Za-z0-9]{32}" + _END),
    ("heroku_key", "HRKU-", r"HRKU-(?:AA[A-Za-z0-9_-]{58}|[0-9a-fA-F-]{36})"),
    ("fly_token", "fm1_ fm2_ fo1_", _START + r"(?:fm[12]|fo1)_[A-Za-z0-9+/=_-]{40,1000}"),
    ("vercel_token", "vercel_blob_rw_ vcp_", r"(?:vercel_blob_rw|vcp)_[A-Za-z0-9_]{20,100}"),
    ("netlify_token", "nfp_", _START + r"nfp_[A-Za-z0-9]{36,44}" + _END),
    ("render_key", "rnd_", _START + r"rnd_[A-Za-z0-9]{28,40}" + _END),
    ("scaleway_key", "SCW", _START + r"SCW[A-Z0-9]{17}" + _END),
    # Code hosts and builds
    ("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    (
        "gitlab_token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct-",
        r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{20,300}",
    ),
    ("bitbucket_token", "ATBB ATCTT3 ATATT3", r"AT(?:BB[A-Za-z0-9]{32}|[AC]TT3[A-Za-z0-9_=-]{20,300})"),
    ("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,512}"),
    ("nuget_key", "oy2", _START + r"oy2[a-z0-9]{43}" + _END),
    ("crates_token", "cio", _START + r"cio[A-Za-z0-9]{32}" + _END),
    ("docker_token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,40}"),
    ("circleci_token", "CCIPAT_ CCIPRJ_", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    ("buildkite_token", "bkua_", r"bkua_[a-f0-9]{40}"),
    ("sonar_token", "sqp_ sqa_ squ_", _START + r"sq[pau]_[a-f0-9]{40}" + _END),
    ("sourcegraph_token", "sgp_", _START + r"sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}" + _END),
    ("postman_key", "PMAK- PMAT-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}|PMAT-[A-Z0-9]{26}"),
    ("doppler_token", "dp.", _START + r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ("vault_token", "hvs. hvb. hvr.", _START + r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    (
        "vault_token",
        "s. b. r.",
        r"(?<![\w.-])[sbr]\.(?=[A-Za-z]{0,23}\d)(?=[a-z0-9]{0,23}[A-Z])[A-Za-z0-9]{24}(?![\w.-])",
    ),
    ("tailscale_key", "tskey-", r"tskey-[a-z]{2,10}-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{16,64}"),
    ("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_-]{100,2000}"),
    ("onepassword_key", "A3-", _START + r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){4}[A-Z0-9]{5,6}" + _END),
    ("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    # Models
    ("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,255}"),
    (
        "openai_key",
        "sk-",
        _START + r"sk-(?!ant-)(?:(?:proj|svcacct|admin|or|or-v1|lf|service)-(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,255}"
        r"|(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{20,255})",
    ),
    ("huggingface_token", "hf_ api_org_", _START + r"(?:hf|api_org)_[A-Za-z0-9]{30,64}"),
    ("replicate_token", "r8_", _START + r"r8_[A-Za-z0-9]{37}" + _END),
    ("groq_key", "gsk_", _START + r"gsk_[A-Za-z0-9]{48,56}" + _END),
    ("perplexity_key", "pplx-", _START + r"pplx-[A-Za-z0-9]{40,60}" + _END),
    ("xai_key", "xai-", _START + r"xai-(?=[A-Za-z]{0,79}\d)[A-Za-z0-9]{70,90}" + _END),
    ("pinecone_key", "pcsk_", _START + r"pcsk_[A-Za-z0-9_]{40,100}"),
    ("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("nvidia_key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{60,80}"),
    # Private keys without their outer lines, by how their first bytes read in base64
    (
        "private_key",
        "b3BlbnNzaC1rZXktdjEA MHcCAQEE MHQCAQEE MIGkAgEBBD MIHcAgEBBE MC4CAQAwBQYDK2V"
        " MIGHAgEAMB MIG2AgEAMB MIHuAgEAMB MIGEAgEAMB",
        r"(?:b3BlbnNzaC1rZXktdjEA|MH[cQ]CAQEE|MIGkAgEBBD|MIHcAgEBBE|MC4CAQAwBQYDK2V[uw]BCIE"
        r"|MI(?:GH|G2|Hu|GE)AgEAMB[AM]GByqGSM49)[A-Za-z0-9+/=\\\r\n]{40,6000}",
    ),
    (
        "private_key",
        "ADANBgkqhkiG9w0BAQEFAAS IBAAKC IBAAKB IBAAJB",
        r"MII[A-Za-z0-9+/]{3}(?:[A-Za-z0-9+/]{2}ADANBgkqhkiG9w0BAQEFAAS|IBAA(?:K[BC]|JB))"
        r"[A-Za-z0-9+/=\\\r\n]{40,6000}",
    ),
    # Wallets; the checksum of the keys is checked
    (
        "wallet_key",
        "prv",
        r"(?<![A-Za-z0-9])[xyzXYZtuvUV]prv[1-9A-HJ-NP-Za-km-z]{107,108}(?![A-Za-z0-9])",
    ),
    ("wallet_key", "edsk spsk p2sk", _START + r"(?:ed|sp|p2)sk[1-9A-HJ-NP-Za-km-z]{50,94}" + _END),
    ("wallet_key", "nsec1 ed25519_sk1 ed25519e_sk1", _START + r"(?:nsec|ed25519e?_sk)1[02-9ac-hj-np-z]{50,120}" + _END),
    ("wallet_key", "S", _START + "S[A-Z2-7]{55}" + _END),
    ("wallet_key", "sEd", _START + "sEd[1-9A-HJ-NP-Za-km-z]{28}" + _END),
    ("wallet_key", "5 K L c 9", r"(?<![A-Za-z0-9])[5KLc9][1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])"),
    # Messages
    ("slack_token", "xox", r"xox[abeoprs]-(?=[A-Za-z0-9-]{0,40}\d)[A-Za-z0-9-]{10,255}"),
    ("slack_token", "xoxe.xox", r"xoxe\.xox[bp]-\d-[A-Za-z0-9]{50,255}"),
    ("slack_token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,255}"),
    (
        "slack_webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]{1,64}/[A-Za-z0-9]{1,64}/(?:\d{1,24}/)?[A-Za-z0-9]{16,64}",
    ),
    ("discord_webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d{16,20}/[A-Za-z0-9_-]{50,90}"),
    ("discord_token", ".", r"(?<![\w.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w.-])"),
    ("discord_token", "mfa.", _START + r"mfa\.[A-Za-z0-9_-]{84}(?![\w-])"),
    ("mandrill_key", "md-", _START + r"md-[A-Za-z0-9_-]{22}(?![\w-])"),
    (
        "teams_webhook",
        "office.com/webhook",
        r"office\.com/webhook(?:b2)?/[\w@-]{70,80}/IncomingWebhook/[a-f0-9]{32}/[\w-]{36}",
    ),
    ("telegram_token", ":AA", r"(?<![\d:])\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
    ("twilio_key", "AC", r"(?<![A-Za-z0-9])AC[0-9a-f]{32}[\"'\s,:]{1,8}([0-9a-f]{32})" + _END),
    ("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("mailgun_key", "-", r"(?<![0-9a-f-])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])"),
    ("mailchimp_key", "-us", r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}" + _END),
    ("brevo_key", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    (
        "resend_key",
        "re_",
        _START + r"re_(?=[A-Za-z]{0,7}\d|[A-Za-z0-9]{8}_[A-Za-z]{0,23}\d)[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + _END,
    ),
    # Money and shops
    ("stripe_key", "whsec_", r"whsec_[A-Za-z0-9+/]{24,255}"),
    ("square_token", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,60}"),
    ("square_token", "EAAA", _START + r"EAAA[A-Za-z0-9_-]{56,64}(?![A-Za-z0-9_-])"),
    ("facebook_token", "EAA", _START + r"EAA[A-Z][A-Za-z0-9]{80,300}"),
    ("shopify_token", "shp", r"shp(?:at|ca|pa|ss|tka)_[A-Fa-f0-9]{32}"),
    ("paypal_token", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("razorpay_key", "rzp_live_", r"rzp_live_[A-Za-z0-9]{14}"),
    ("flutterwave_key", "FLWSECK", r"FLWSECK(?:_TEST|_LIVE)?-[A-Za-z0-9]{12,40}-?X?"),
    # Watching
    ("grafana_token", "eyJrIjoi", r"(?<![A-Za-z0-9_-])eyJrIjoi[A-Za-z0-9+/]{60,400}={0,2}"),
    ("newrelic_key", "NRAK- NRII- NRJS- NRRA- NRIQ-", r"NR(?:AK|II|JS|RA|IQ)-[A-Za-z0-9_-]{19,64}"),
    ("newrelic_key", "NRAL", r"(?<![a-f0-9])[a-f0-9]{36}NRAL"),
    ("sentry_token", "sntrys_ sntryu_", r"sntry(?:u_[a-f0-9]{64}|s_eyJ[A-Za-z0-9+/=_]{60,400})"),
    ("dynatrace_token", "dt0", _START + r"dt0[a-z]\d{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    ("supabase_key", "sbp_ sb_secret_", r"sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{20,60})"),
    # Offices
    ("linear_key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("notion_token", "secret_", _START + r"secret_(?=[A-Za-z]{0,42}\d)[A-Za-z0-9]{43}" + _END),
    ("notion_token", "ntn_", _START + r"ntn_[A-Za-z0-9]{40,50}" + _END),
    ("clickup_token", "pk_", _START + r"pk_\d{5,10}_[A-Z0-9]{32}" + _END),
    ("figma_token", "figd_ figu_ figo_", r"fig[duo][rh]?_[A-Za-z0-9_-]{40,60}"),
    ("asana_token", "/", r"(?<![\w/])[12]/\d{13,17}(?:/\d{13,17})?:[a-f0-9]{32}" + _END),
    ("dropbox_token", "sl.", _START + r"sl\.(?:u\.)?[A-Za-z0-9_-]{130,2000}"),
    ("hubspot_token", "pat-", _START + r"pat-(?:na|eu|ap)\d-" + _UUID),
    ("salesforce_token", "00D", _START + r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,200}"),
    ("typeform_token", "tfp_", _START + r"tfp_[A-Za-z0-9_]{40,60}"),
    ("contentful_token", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{43}"),
    ("mapbox_token", "sk.eyJ", _START + r"sk\.eyJ[A-Za-z0-9_-]{40,200}\.[A-Za-z0-9_-]{16,40}"),
    ("twitter_token", "AAAAAAAAAAAA", r"A{19,24}[B-Za-z0-9][A-Za-z0-9]{20,80}(?:%[0-9A-F]{2}[A-Za-z0-9]{1,80}){1,6}"),
    ("riot_key", "RGAPI-", r"RGAPI-" + _UUID),
    ("wakatime_key", "waka_", _START + r"waka_" + _UUID),
    (
        "jwt",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,8192}\.(?:eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{0,2048}"
        r"|[A-Za-z0-9_-]{0,2048}\.[A-Za-z0-9_-]{16,8192}(?:\.[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{16,128})?)",
    ),
)
