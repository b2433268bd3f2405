package ec2

import (
	"encoding/xml"
	"maps"
	"slices"
)

// requestID is that of every response.
const requestID = "00000000-0000-0000-0000-000000000000"

// The VPC and the subnet of all instances.
const (
	vpcID    = "vpc-00000000000000001"
	subnetID = "subnet-00000000000000001"
)

type errorResponse struct {
	XMLName   xml.Name `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

type topologyResponse struct {
	XMLName xml.Name `xml:"DescribeInstanceTopologyResponse"`
}

type zonesResponse struct {
	XMLName xml.Name   `xml:"DescribeAvailabilityZonesResponse"`
	Zones   []zoneItem `xml:"availabilityZoneInfo>item"`
}

type zoneItem struct {
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	Region string `xml:"regionName"`
	State  string `xml:"zoneState"`
	Type   string `xml:"zoneType"`
}

// instancesResponse has one reservation.
type instancesResponse struct {
	XMLName   xml.Name       `xml:"DescribeInstancesResponse"`
	Instances []instanceItem `xml:"reservationSet>item>instancesSet>item"`
}

type instanceItem struct {
	ID         string          `xml:"instanceId"`
	State      string          `xml:"instanceState>name"`
	Name       string          `xml:"privateDnsName"`
	Address    string          `xml:"privateIpAddress"`
	Type       string          `xml:"instanceType"`
	Zone       string          `xml:"placement>availabilityZone"`
	VPC        string          `xml:"vpcId"`
	Subnet     string          `xml:"subnetId"`
	Tags       []tagItem       `xml:"tagSet>item"`
	Interfaces []interfaceItem `xml:"networkInterfaceSet>item"`
}

type tagItem struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type interfaceItem struct {
	Status    string   `xml:"status"`
	Addresses []string `xml:"privateIpAddressesSet>item>privateIpAddress"`
}

func newInstancesResponse(instances []Instance) instancesResponse {
	var out instancesResponse
	for _, i := range instances {
		item := instanceItem{
			ID: i.ID, State: i.State, Name: i.Name, Address: i.Address, Type: i.Type, Zone: i.Zone, VPC: vpcID,
			Subnet: subnetID, Interfaces: []interfaceItem{{Status: "in-use", Addresses: []string{i.Address}}},
		}
		for _, key := range slices.Sorted(maps.Keys(i.Tags)) {
			item.Tags = append(item.Tags, tagItem{key, i.Tags[key]})
		}
		out.Instances = append(out.Instances, item)
	}
	return out
}
