{{- define "kubenexus.fullname" -}}
{{- .Values.fullnameOverride | default (printf "%s-%s" .Release.Name .Chart.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kubenexus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kubenexus.fullname" . }}
{{- end -}}

{{- define "kubenexus.labels" -}}
{{ include "kubenexus.selectorLabels" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/part-of: kubenexus
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kubenexus.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "kubenexus.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kubenexus.fullname" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "kubenexus.lease" -}}
{{- $election := .Values.config.leaderElection | default dict -}}
{{- $election.resourceName | default (include "kubenexus.fullname" .) -}}
{{- end -}}

{{- define "kubenexus.config" -}}
{{- $election := dict "leaderElect" true "resourceNamespace" .Release.Namespace "resourceName" (include "kubenexus.fullname" .) -}}
{{- $given := .Values.config.leaderElection | default dict -}}
{{- toYaml (merge (dict "leaderElection" (merge (deepCopy $given) $election)) .Values.config) -}}
{{- end -}}

{{- define "kubenexus.webhookName" -}}
{{- printf "%s-webhook" (include "kubenexus.fullname" .) -}}
{{- end -}}

{{- define "kubenexus.webhookSelectorLabels" -}}
app.kubernetes.io/name: {{ include "kubenexus.webhookName" . }}
{{- end -}}

{{- define "kubenexus.webhookLabels" -}}
{{ include "kubenexus.webhookSelectorLabels" . }}
app.kubernetes.io/component: webhook
app.kubernetes.io/part-of: kubenexus
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kubenexus.webhookSecret" -}}
{{- .Values.webhook.certificate.secretName | default (printf "%s-tls" (include "kubenexus.webhookName" .)) -}}
{{- end -}}

{{/* The fields that all webhooks of a configuration have in common. */}}
{{- define "kubenexus.webhookCommon" -}}
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: {{ .root.Values.webhook.timeoutSeconds }}
failurePolicy: {{ .root.Values.webhook.failurePolicy }}
clientConfig:
  {{- if and (eq .root.Values.webhook.certificate.mode "secret") .root.Values.webhook.certificate.caBundle }}
  caBundle: {{ .root.Values.webhook.certificate.caBundle }}
  {{- end }}
  service:
    name: {{ include "kubenexus.webhookName" .root }}
    namespace: {{ .root.Release.Namespace }}
    path: {{ .path }}
namespaceSelector:
  matchExpressions:
  # What keeps the cluster running must not wait for the webhook, nor the webhook for itself.
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: [kube-system, kube-node-lease, {{ .root.Release.Namespace }}]
  {{- with .label }}
  - key: {{ . }}
    operator: Exists
  {{- end }}
{{- end -}}

{{- define "kubenexus.webhookMetadata" -}}
name: {{ include "kubenexus.webhookName" . }}
labels:
  {{- include "kubenexus.webhookLabels" . | nindent 2 }}
{{- if eq .Values.webhook.certificate.mode "certManager" }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "kubenexus.webhookName" . }}
{{- end }}
{{- end -}}

{{- define "kubenexus.discoveryLabels" -}}
app.kubernetes.io/name: {{ include "kubenexus.fullname" . }}-discovery
app.kubernetes.io/component: discovery
app.kubernetes.io/part-of: kubenexus
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
