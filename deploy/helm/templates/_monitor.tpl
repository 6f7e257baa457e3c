{{- /* Where metrics are read, for a ServiceMonitor and a PodMonitor: list CONTEXT MONITOR. */}}
{{- define "dewpoint.endpoint" -}}
{{- $root := index . 0 }}
{{- with index . 1 -}}
port: admin
path: /metrics
interval: {{ .interval | quote }}
scrapeTimeout: {{ .scrapeTimeout | quote }}
scheme: {{ .scheme }}
{{- with .tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
authorization:
  type: Bearer
  credentials:
    name: {{ include "dewpoint.adminSecret" $root | quote }}
    key: {{ $root.Values.adminToken.key | default "token" | quote }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The metadata of a monitor and the namespace whose pods it reads: list CONTEXT MONITOR. */}}
{{- define "dewpoint.monitor" -}}
{{- $root := index . 0 }}
{{- with index . 1 -}}
metadata:
  {{- include "dewpoint.metadata" (list $root "" .namespace) | nindent 2 }}
    {{- with .labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  namespaceSelector:
    matchNames: [{{ $root.Release.Namespace | quote }}]
  jobLabel: app.kubernetes.io/name
{{- end }}
{{- end }}
