{{- /* The ports of the URLs that requests, summaries and findings go to, as JSON. A URL that is only known at run time counts
       as https. list VALUES CONFIG, as in what follows. */}}
{{- define "dewpoint.upstreamPorts" -}}
{{- $standard := dict "upstream" (dict "base_url" "https://api.openai.com/v1") }}
{{- $config := merge (omit (index . 1) "store" | deepCopy) $standard | toJson }}
{{- $ports := list }}
{{- range regexFindAll `"(base_)?url":"[^"]+` $config -1 }}
{{- $ports = append $ports (include "dewpoint.urlPort" . | default (ternary 80 443 (contains `"http://` .)) | int) }}
{{- end }}
{{- $ports | uniq | sortAlpha | toJson }}
{{- end }}

{{- /* The ports of Redis. Behind Sentinels the servers have 6379 as a rule. */}}
{{- define "dewpoint.redisPorts" -}}
{{- $redis := (index . 1).store.redis }}
{{- $ports := list }}
{{- range $redis.addrs }}
{{- $ports = append $ports (include "dewpoint.port" . | int) }}
{{- end }}
{{- with $redis.url }}
{{- $ports = append $ports (include "dewpoint.urlPort" . | default "6379" | int) }}
{{- end }}
{{- if $redis.master_name }}
{{- $ports = append $ports 6379 }}
{{- end }}
{{- $ports | uniq | sortAlpha | toJson }}
{{- end }}

{{- /* The port that a URL names, if any. */}}
{{- define "dewpoint.urlPort" -}}
{{- regexFind "//[^/?#]*" . | regexFind ":[0-9]+$" | trimPrefix ":" }}
{{- end }}

{{- define "dewpoint.tcpPorts" -}}
{{- range . }}
- protocol: TCP
  port: {{ int . }}
{{- end }}
{{- end }}
