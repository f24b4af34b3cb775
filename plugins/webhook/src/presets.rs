//! Ready settings for common receivers. Each is what an operator could have written.

use super::template::Escape;

/// What a receiver expects.
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) url: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) body: &'static str,
    pub(crate) escape: Escape,
    /// whether several entries go as a JSON list
    pub(crate) is_list: bool,
    /// entries in one request, unless the settings say otherwise
    pub(crate) batch_max: usize,
    /// bytes of a title or a text; the receiver takes no more
    pub(crate) text_max: usize,
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// The first one is taken where the settings name none.
pub(crate) const PRESETS: [Preset; 8] = [
    Preset {
        name: "json",
        url: "",
        headers: &[JSON, ("webhook-id", "{{id}}"), ("webhook-timestamp", "{{at-s}}")],
        body: "{{json}}",
        escape: Escape::Json,
        is_list: true,
        batch_max: 100,
        text_max: 64 << 10,
    },
    Preset {
        name: "slack",
        url: "{{secret:url}}",
        headers: &[JSON],
        body: r#"{"text":"*{{title}}*\n{{text}}"}"#,
        escape: Escape::Slack,
        is_list: false,
        batch_max: 1,
        text_max: 3000,
    },
    Preset {
        name: "discord",
        url: "{{secret:url}}",
        headers: &[JSON],
        // No text of a job may call everybody.
        body: r#"{"content":"**{{title}}**\n{{text}}","allowed_mentions":{"parse":[]}}"#,
        escape: Escape::Json,
        is_list: false,
        batch_max: 1,
        text_max: 900, // title and text together have to stay below 2,000 characters
    },
    Preset {
        name: "ntfy",
        url: "https://ntfy.sh/",
        headers: &[JSON],
        body: r#"{"topic":"{{secret:topic}}","title":"{{title}}","message":"{{text}}","priority":{{priority}},"tags":["{{tag}}"]}"#,
        escape: Escape::Json,
        is_list: false,
        batch_max: 1,
        text_max: 2000,
    },
    Preset {
        name: "pagerduty",
        url: "https://events.pagerduty.com/v2/enqueue",
        headers: &[JSON],
        body: r#"{"routing_key":"{{secret:routing_key}}","event_action":"{{action}}","dedup_key":"{{fingerprint}}","payload":{"summary":"{{title}}: {{text}}","source":"latido {{journal}}","severity":"{{severity}}","timestamp":"{{at}}","custom_details":{{json}}}}"#,
        escape: Escape::Json,
        is_list: false,
        batch_max: 1,
        text_max: 500, // the summary has at most 1,024 characters
    },
    Preset {
        name: "teams",
        url: "{{secret:url}}",
        headers: &[JSON],
        body: r#"{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","type":"AdaptiveCard","version":"1.4","body":[{"type":"TextBlock","weight":"Bolder","wrap":true,"text":"{{title}}"},{"type":"TextBlock","wrap":true,"text":"{{text}}"}]}}]}"#,
        escape: Escape::Json,
        is_list: false,
        batch_max: 1,
        text_max: 8000,
    },
    Preset {
        name: "telegram",
        url: "https://api.telegram.org/bot{{secret:token}}/sendMessage",
        headers: &[JSON],
        body: r#"{"chat_id":"{{value:chat_id}}","text":"{{title}}\n{{text}}"}"#,
        escape: Escape::Json,
        is_list: false,
        batch_max: 1,
        text_max: 2000, // a message has at most 4,096 characters
    },
    Preset {
        name: "resend",
        url: "https://api.resend.com/emails",
        headers: &[JSON, ("authorization", "Bearer {{secret:key}}"), ("idempotency-key", "{{id}}")],
        body: r#"{"from":"{{value:from}}","to":["{{value:to}}"],"subject":"{{title}}","text":"{{text}}\n\n{{at}}, {{type}} {{sequence}}"}"#,
        escape: Escape::Json,
        is_list: false,
        batch_max: 1,
        text_max: 32 << 10,
    },
];
