package cloudsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The price list and the quotas, which speak JSON.

func (s *Sim) awsJSONCall(w http.ResponseWriter, r *http.Request, body []byte, target string) {
	actions := map[string]struct {
		name, service string
		do            func(a awsRequest) (any, error)
	}{
		"AWSPriceListService.GetProducts":        {"get prices", "pricing", awsRequest.getProducts},
		"ServiceQuotasV20190624.GetServiceQuota": {"get quota", "servicequotas", awsRequest.getQuota},
	}
	action, found := actions[target]
	c := &call{sim: s, name: "unknown", w: w, r: r, body: body}
	if found {
		c.name = action.name
	}
	a := awsRequest{call: c, action: target}
	var signErr error
	s.locked(func(time.Time) {
		a.signer, signErr = s.awsSignerOf(r, action.service)
		a.region = a.signer.region
		if signErr == nil {
			c.project, a.account = s.awsOf(a.signer.account)
		}
	})
	c.faulty(awsName, func(w http.ResponseWriter, f Fault) {
		code := f.Code
		if code == "" {
			code = "ThrottlingException"
		}
		status := f.Status
		if status == 0 {
			status = http.StatusBadRequest
		}
		awsReply(w, s.azureID(), status, map[string]string{"__type": code, "message": "simulated"})
	}, func(w http.ResponseWriter) {
		c.w = w
		var out any
		err := signErr
		switch {
		case !found:
			err = &awsError{http.StatusBadRequest, "UnknownOperationException", ""}
		case err == nil:
			out, err = action.do(a)
		}
		if err != nil {
			e := err.(*awsError) // all of the above are
			code := map[string]string{"InvalidClientTokenId": "UnrecognizedClientException", "ExpiredToken": "ExpiredTokenException"}[e.code]
			if code == "" {
				code = e.code
			}
			awsReply(w, s.azureID(), http.StatusBadRequest, map[string]string{"__type": code, "message": e.message})
			return
		}
		awsReply(w, s.azureID(), http.StatusOK, out)
	})
}

func awsReply(w http.ResponseWriter, id string, status int, v any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // to a buffer
}

// awsPricesPerPage is small, so that there is more than one page.
const awsPricesPerPage = 8

func (a awsRequest) getProducts() (any, error) {
	var in struct {
		ServiceCode, FormatVersion, NextToken string
		MaxResults                            int
		Filters                               []struct{ Type, Field, Value string }
	}
	if err := json.Unmarshal(a.body, &in); err != nil || in.ServiceCode != "AmazonEC2" {
		return nil, &awsError{http.StatusBadRequest, "InvalidParameterException", "Input is not as the service has it."}
	}
	region, size := "", ""
	for _, f := range in.Filters {
		switch {
		case f.Type != "TERM_MATCH":
			return nil, &awsError{http.StatusBadRequest, "InvalidParameterException", "Unknown filter type " + f.Type}
		case f.Field == "regionCode":
			region = f.Value
		case f.Field == "instanceType":
			size = f.Value
		}
	}
	var list []string
	for _, t := range awsTypes() {
		if slices.Contains(t.absent, region) || size != "" && size != t.name {
			continue
		}
		price := strconv.FormatFloat(t.price(region), 'f', 10, 64)
		text, err := json.Marshal(map[string]any{
			"serviceCode": "AmazonEC2", "version": "20261120000000", "publicationDate": "2026-11-20T00:00:00Z",
			"product": map[string]any{"productFamily": "Compute Instance", "sku": "SIM" + t.name, "attributes": map[string]string{
				"instanceType": t.name, "regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared", "vcpu": fmt.Sprint(t.cpus), "marketoption": "OnDemand",
			}},
			"terms": map[string]any{"OnDemand": map[string]any{"SIM.JRTCKXETXF": map[string]any{"priceDimensions": map[string]any{
				"SIM.JRTCKXETXF.6YS6EN2CT7": map[string]any{"unit": "Hrs", "pricePerUnit": map[string]string{"USD": price}},
			}}}},
		})
		if err != nil {
			return nil, &awsError{http.StatusInternalServerError, "InternalErrorException", err.Error()}
		}
		list = append(list, string(text))
	}
	start, _ := strconv.Atoi(in.NextToken)
	start = min(max(start, 0), len(list))
	end := min(start+awsPricesPerPage, len(list))
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": orEmpty(list[start:end])}
	if end < len(list) {
		out["NextToken"] = strconv.Itoa(end)
	}
	return out, nil
}

func (a awsRequest) getQuota() (any, error) {
	var in struct{ ServiceCode, QuotaCode string }
	if err := json.Unmarshal(a.body, &in); err != nil || in.ServiceCode != "ec2" || in.QuotaCode != "L-1216C47A" {
		return nil, &awsError{http.StatusBadRequest, "NoSuchResourceException", "The request failed because the specified service quota does not exist."}
	}
	return map[string]any{"Quota": map[string]any{
		"ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)", "QuotaCode": in.QuotaCode,
		"QuotaName": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "Value": float64(awsCPULimit), "Unit": "None",
		"Adjustable": true, "GlobalQuota": false,
	}}, nil
}
